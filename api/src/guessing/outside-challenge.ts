/**
 * The challenge of another service, such as Turnstile, hCaptcha or reCAPTCHA: the client sends a token of that service, and the service is
 * asked whether it is valid. What they call "siteverify": a form with `secret`, `response` and `remoteip`, answered by JSON with `success`.
 */
import { createHash } from 'node:crypto'
import { ApiError } from '../problems/errors.js'
import { CHALLENGE_TTL_S, type Solved } from './proof-of-work.js'

/** A login must not hang because another service does. */
const TIMEOUT_MS = 3_000
/** reCAPTCHA's tokens have some 2,000 characters. */
const TOKEN_MAX_LENGTH = 8_192
/**
 * Tokens that one gateway has checked at a time: some 500 a second, where the service answers in a tenth. More are refused, because a slow
 * service would have them pile up, each with a connection of its own.
 */
const CHECKS_MAX = 50

/** The client that sent an answer, and its request. */
export interface Answerer {
  address: string
  /** Aborts when the client disconnects. */
  gone: AbortSignal
  /** Awaits another service: meanwhile the request does not count as one that the gateway works on. */
  whilePaused<T>(wait: () => Promise<T>): Promise<T>
}

export interface OutsideChallenge {
  siteKey: string
  /**
   * Undefined unless the service says that the token is good. Throws `unavailable` when it does not say: nobody gets past a service that is
   * down, and known devices need not ask it. Throws `busy` while too many tokens are being checked.
   */
  check(token: string, answerer: Answerer): Promise<Solved | undefined>
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
  let checks = 0

  return {
    siteKey,
    async check(token, { address, gone, whilePaused }) {
      if (token === '' || token.length > TOKEN_MAX_LENGTH) return undefined
      if (checks >= CHECKS_MAX) throw new ApiError('busy', { reason: 'too_many_waiting', retryAfterS: 1 })
      const body = new URLSearchParams({ secret, response: token, remoteip: address })
      checks++
      try {
        const isGood = await whilePaused(() => ask(verifyUrl, body, gone))
        // Marked as used here too: not every service takes a token once.
        const id = createHash('sha256').update(token).digest('base64url')
        return isGood ? { id, leftMs: CHALLENGE_TTL_S * 1_000 } : undefined
      } catch (error) {
        // Nobody gets the answer, and there is no failure to log.
        if (gone.aborted) return undefined
        throw new ApiError('unavailable', { cause: error, retryAfterS: 1 })
      } finally {
        checks--
      }
    },
  }
}

async function ask(verifyUrl: string, body: URLSearchParams, gone: AbortSignal): Promise<boolean> {
  // Not AbortSignal.any, which may lose a timeout to the garbage collector in Node 20.
  const end = new AbortController()
  const leave = () => end.abort()
  const timer = setTimeout(() => end.abort(new Error('the verifier of challenges did not answer in time')), TIMEOUT_MS)
  gone.addEventListener('abort', leave)
  if (gone.aborted) leave()
  try {
    const response = await fetch(verifyUrl, { method: 'POST', body, signal: end.signal })
    if (!response.ok) throw new Error(`the verifier of challenges answered ${response.status}`)
    const answer: unknown = await response.json()
    return typeof answer === 'object' && answer !== null && 'success' in answer && answer.success === true
  } finally {
    clearTimeout(timer)
    gone.removeEventListener('abort', leave)
  }
}
