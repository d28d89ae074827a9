/** Base64 in stored hashes, read strictly: a text that no encoder writes is refused. */

/** Base64 as PHC strings have it. */
export function unpadded(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replace(/=+$/, '')
}

/** The bytes of a text with its padding or without any; undefined for characters, lengths or spare bits that no encoder writes. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return text === unpadded(bytes) || text === bytes.toString('base64') ? bytes : undefined
}

/** Two parts of one text: both are padded where padding is due, or neither is. */
export function decodeBase64Pair(one: string, other: string): [Buffer, Buffer] | undefined {
  const bytes: [Buffer, Buffer] = [Buffer.from(one, 'base64'), Buffer.from(other, 'base64')]
  const isWritten = (encode: (bytes: Buffer) => string) => encode(bytes[0]) === one && encode(bytes[1]) === other
  return isWritten(unpadded) || isWritten((part) => part.toString('base64')) ? bytes : undefined
}
