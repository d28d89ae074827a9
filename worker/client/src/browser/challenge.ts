/** Challenges against guessing: proof of work (Hashcash) is solved here, any other by the page. */
import type { HttpAnswer } from './send.js'

/** As in the gateway's problem. */
export interface Challenge {
  kind: 'proof_of_work' | 'outside'
  /** Of proof of work. */
  token?: string
  bits?: number
  /** Of another service, by its widget on the page. */
  siteKey?: string
}

/** Resolves with the answer to a challenge. */
export type SolveChallenge = (challenge: Challenge, signal: AbortSignal) => Promise<string>

/** Digests at a time, between two looks at the signal. */
const BATCH = 1_024

/** Undefined without a challenge, and for one that only the page could solve. */
export function solverOf(
  { body }: HttpAnswer,
  given?: SolveChallenge,
): ((signal: AbortSignal) => Promise<string>) | undefined {
  const challenge = body.challenge
  if (!isChallenge(challenge)) return undefined
  const solve = given ?? (challenge.kind === 'proof_of_work' ? prove : undefined)
  return solve && ((signal) => solve(challenge, signal))
}

function isChallenge(value: unknown): value is Challenge {
  return typeof value === 'object' && value !== null && 'kind' in value
}

/** Finds a text whose digest begins with so many zero bits: 18 take some 260,000 digests. */
async function prove({ token, bits = 0 }: Challenge, signal: AbortSignal): Promise<string> {
  const startsOf = Reflect.get(globalThis, 'crypto')?.subtle ? startsBesidePage : startsInPage
  for (let first = 0; ; first += BATCH) {
    if (signal.aborted) throw signal.reason
    const answers = Array.from({ length: BATCH }, (_, n) => `${token}.${first + n}`)
    const starts = await startsOf(answers)
    const found = answers[starts.findIndex((start) => Math.clz32(start) >= bits)]
    if (found !== undefined) return found
  }
}

/** The first 32 bits of each digest; the browser computes them beside the page. */
async function startsBesidePage(texts: readonly string[]): Promise<number[]> {
  const encoder = new TextEncoder()
  const digests = await Promise.all(texts.map((text) => crypto.subtle.digest('SHA-256', encoder.encode(text))))
  return digests.map((digest) => new DataView(digest).getUint32(0))
}

/**
 * The same without Web Crypto, which browsers keep from pages by plain http (Secure Contexts), and
 * React Native does not have. The page gets a turn before each batch.
 */
async function startsInPage(texts: readonly string[]): Promise<number[]> {
  await new Promise((later) => setTimeout(later))
  return texts.map(digestBeginning)
}

// The beginning of a SHA-256 (FIPS 180-4), for pages without Web Crypto. In 0.5 kB: the smallest
// package with it would add three quarters to the client, and takes twice as long. A wrong digest
// would solve no challenge.

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
