/**
 * The challenge of another service, such as Turnstile, hCaptcha or reCAPTCHA: the client sends a token of that service, and the service is
 * asked whether it is valid. What they call "siteverify": a form with `secret`, `response` and `remoteip`, answered by JSON with `success`.
 */
import { hash } from 'node:crypto'
import { ApiError } from '../errors.js'
import { type Answerer, CHALLENGE_TTL_S, type Challenges, type Solved } from './challenges.js'

/** A login must not hang because another service does. */
const TIMEOUT_MS = 3_000
/** reCAPTCHA's tokens have some 2,000 characters. */
const TOKEN_MAX_LENGTH = 8_192
/**
 * Tokens that one gateway has checked at a time: some 500 a second, where the service answers in a tenth. More are refused, because a slow
 * service would have them pile up, each with a connection of its own.
 */
const CHECKS_MAX = 50

export class OutsideChallenge implements Challenges {
  readonly #options: { verifyUrl: string; secret: string; siteKey: string }
  #checks = 0

  constructor(options: { verifyUrl: string; secret: string; siteKey: string }) {
    this.#options = options
  }

  issue() {
    return { kind: 'outside', siteKey: this.#options.siteKey } as const
  }

  /** Nobody gets past a service that is down, and known devices need not ask it. */
  async check(_account: string, token: string, { address, gone, whilePaused }: Answerer): Promise<Solved | undefined> {
    if (token === '' || token.length > TOKEN_MAX_LENGTH) return undefined
    if (this.#checks >= CHECKS_MAX) throw new ApiError('busy', { reason: 'too_many_waiting', retryAfterS: 1 })
    const { verifyUrl, secret } = this.#options
    const body = new URLSearchParams({ secret, response: token, remoteip: address })
    this.#checks++
    try {
      const isGood = await whilePaused(() => ask(verifyUrl, body, gone))
      // Marked as used here too: not every service takes a token once.
      return isGood ? { id: hash('sha256', token, 'base64url'), leftMs: CHALLENGE_TTL_S * 1_000 } : undefined
    } catch (error) {
      // Nobody gets the answer, and there is no failure to log.
      if (gone.aborted) return undefined
      throw new ApiError('unavailable', { cause: error, retryAfterS: 1 })
    } finally {
      this.#checks--
    }
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
