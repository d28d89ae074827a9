/** Challenges against guessing: proof of work (Hashcash) is solved here, any other by the page. */
import type { HttpAnswer } from './send.js'
import { digestBeginning } from './sha256.js'

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
