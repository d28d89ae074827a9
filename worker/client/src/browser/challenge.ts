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

/** Digests at a time: the browser computes them beside the page. */
const BATCH = 512

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

/** Finds a text whose digest begins with so many zero bits: 18 take some 100,000 digests. */
async function prove({ token, bits = 0 }: Challenge, signal: AbortSignal): Promise<string> {
  const encoder = new TextEncoder()
  for (let first = 0; ; first += BATCH) {
    signal.throwIfAborted()
    const answers = Array.from({ length: BATCH }, (_, n) => `${token}.${first + n}`)
    const digests = await Promise.all(answers.map((answer) => crypto.subtle.digest('SHA-256', encoder.encode(answer))))
    const found = answers[digests.findIndex((digest) => Math.clz32(new DataView(digest).getUint32(0)) >= bits)]
    if (found !== undefined) return found
  }
}
