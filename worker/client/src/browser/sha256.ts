/**
 * The beginning of a SHA-256 (FIPS 180-4), for pages without Web Crypto. In 0.5 kB: the smallest
 * package with it would add three quarters to the client, and takes twice as long. A wrong digest
 * would solve no challenge.
 */

const ROUNDS = 64
const BLOCK_BYTES = 64
const primes: number[] = []
for (let n = 2; primes.length < ROUNDS; n += 1) if (primes.every((prime) => n % prime > 0)) primes.push(n)

/** The first 32 bits of the fraction of a root. */
const fractionOf = (root: number) => ((root % 1) * 2 ** 32) | 0
const CONSTANTS = primes.map((prime) => fractionOf(Math.cbrt(prime)))
const INITIAL = primes.slice(0, 8).map((prime) => fractionOf(Math.sqrt(prime)))

/** The first 32 bits of the digest of a text of one byte a character. */
export function digestBeginning(text: string): number {
  const message = padded(text)
  let state = INITIAL
  for (let at = 0; at < message.byteLength; at += BLOCK_BYTES) state = compressed(state, scheduleOf(message, at))
  return (state[0] ?? 0) >>> 0
}

/** Whole blocks: the text, a bit, zeros, and the length in bits. */
function padded(text: string): DataView {
  const blocks = Math.floor((text.length + 8) / BLOCK_BYTES) + 1
  const message = new DataView(new ArrayBuffer(blocks * BLOCK_BYTES))
  for (let n = 0; n < text.length; n += 1) message.setUint8(n, text.charCodeAt(n))
  message.setUint8(text.length, 0x80)
  message.setUint32(message.byteLength - 4, text.length * 8)
  return message
}

/** A word for each round. */
function scheduleOf(message: DataView, at: number): DataView {
  const words = new DataView(new ArrayBuffer(4 * ROUNDS))
  const word = (n: number) => words.getInt32(4 * n)
  for (let n = 0; n < ROUNDS; n += 1) {
    const mixed = () => word(n - 16) + shifted(word(n - 15), 7, 18, 3) + word(n - 7) + shifted(word(n - 2), 17, 19, 10)
    words.setInt32(4 * n, n < 16 ? message.getInt32(at + 4 * n) : mixed())
  }
  return words
}

function compressed(state: readonly number[], schedule: DataView): number[] {
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  CONSTANTS.forEach((constant, n) => {
    const choice = (e & f) ^ (~e & g)
    const majority = (a & b) ^ (a & c) ^ (b & c)
    const first = (h + rotated(e, 6, 11, 25) + choice + constant + schedule.getInt32(4 * n)) | 0
    const second = rotated(a, 2, 13, 22) + majority
    ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0]
  })
  return [a, b, c, d, e, f, g, h].map((word, n) => (word + (state[n] ?? 0)) | 0)
}

const turned = (word: number, bits: number) => (word >>> bits) | (word << (32 - bits))
const rotated = (word: number, x: number, y: number, z: number) => turned(word, x) ^ turned(word, y) ^ turned(word, z)
const shifted = (word: number, x: number, y: number, z: number) => turned(word, x) ^ turned(word, y) ^ (word >>> z)
