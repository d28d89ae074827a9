/** Base64 as stored hashes have it, read strictly: a text that its own encoder would write differently is none. */

/** Base64 as PHC strings have it. */
export function unpadded(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replace(/=+$/, '')
}

/** The bytes of a text with its padding or without any; undefined for characters, lengths or spare bits that no encoder writes. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return text === unpadded(bytes) || text === bytes.toString('base64') ? bytes : undefined
}

/** Of a text with several: all of them are padded, or none is, where padding is due. */
export function decodeBase64Pair(one: string, other: string): [Buffer, Buffer] | undefined {
  const bytes: [Buffer, Buffer] = [Buffer.from(one, 'base64'), Buffer.from(other, 'base64')]
  const isWritten = (encode: (bytes: Buffer) => string) => encode(bytes[0]) === one && encode(bytes[1]) === other
  return isWritten(unpadded) || isWritten((part) => part.toString('base64')) ? bytes : undefined
}
