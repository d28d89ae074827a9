/** The base64 of crypt(3) and phpass: another alphabet than RFC 4648, and the lowest six bits first. */

const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

export function encodeCrypt64(bytes: Uint8Array): string {
  let text = ''
  let [bits, held] = [0, 0]
  for (const byte of bytes) {
    bits |= byte << held
    for (held += 8; held >= 6; held -= 6) {
      text += ALPHABET[bits & 0x3f]
      bits >>= 6
    }
  }
  return held > 0 ? text + ALPHABET[bits & 0x3f] : text
}

/** The bytes of a text of the alphabet. Of the last character some bits may be left over. */
export function decodeCrypt64(text: string): Buffer {
  const bytes: number[] = []
  let [bits, held] = [0, 0]
  for (const character of text) {
    bits |= crypt64Digit(character) << held
    held += 6
    if (held < 8) continue
    bytes.push(bits & 0xff)
    bits >>= 8
    held -= 8
  }
  return Buffer.from(bytes)
}

/** The number that a character stands for; -1 for one that is not of the alphabet. */
export function crypt64Digit(character: string): number {
  return character === '' ? -1 : ALPHABET.indexOf(character)
}
