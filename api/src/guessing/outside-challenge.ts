/**
 * The challenge of another service, such as Turnstile, hCaptcha or reCAPTCHA: the client sends the token that it got there, and the
 * service is asked whether it is good. What they call "siteverify": a form with `secret`, `response` and `remoteip`, answered by JSON with
 * `success`.
 */
import { createHash } from 'node:crypto'
import { ApiError } from '../problems/errors.js'
import { CHALLENGE_TTL_S, type Solved } from './proof-of-work.js'

/** A login must not hang because another service does. */
const TIMEOUT_MS = 3_000
/** reCAPTCHA's tokens have some 2,000 characters. */
const TOKEN_MAX_LENGTH = 8_192

export interface OutsideChallenge {
  siteKey: string
  /**
   * Undefined unless the service says that the token is good. Throws `unavailable` when it does not say: nobody gets past a service that is
   * down, and known devices need not ask it.
   */
  check(token: string, address: string): Promise<Solved | undefined>
}

export function createOutsideChallenge({
  verifyUrl,
  secret,
  siteKey,
}: {
  verifyUrl: string
  secret: string
  siteKey: string
}): OutsideChallenge {
  return {
    siteKey,
    async check(token, address) {
      if (token === '' || token.length > TOKEN_MAX_LENGTH) return undefined
      const body = new URLSearchParams({ secret, response: token, remoteip: address })
      const said = await ask(verifyUrl, body).catch((error: unknown) => {
        throw new ApiError('unavailable', { cause: error, retryAfterS: 1 })
      })
      // Marked as used here too: not every service takes a token once.
      const id = createHash('sha256').update(token).digest('base64url')
      return said ? { id, leftMs: CHALLENGE_TTL_S * 1_000 } : undefined
    },
  }
}

async function ask(verifyUrl: string, body: URLSearchParams): Promise<boolean> {
  const response = await fetch(verifyUrl, { method: 'POST', body, signal: AbortSignal.timeout(TIMEOUT_MS) })
  if (!response.ok) throw new Error(`the verifier of challenges answered ${response.status}`)
  const answer: unknown = await response.json()
  return typeof answer === 'object' && answer !== null && 'success' in answer && answer.success === true
}
