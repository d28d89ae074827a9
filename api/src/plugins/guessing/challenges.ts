/** Challenges, which replace a delay: proof of work, or the challenge of another service. */
import { createHash, hash, randomBytes } from 'node:crypto'
import type { Keyring } from '@spillway/queue/queue-client'
import type { FastifyRequest } from 'fastify'
import type { Challenge } from '../../schemas/responses.js'
import { ApiError } from '../errors.js'
import { isSigned } from './device-token.js'

/** How long a client may take, in seconds: slow phones need a minute for the hardest challenge. */
const CHALLENGE_TTL_S = 300

/** A challenge that was solved. It must be marked as used before it allows anything. */
export interface Solved {
  id: string
  /** Until it expires, in milliseconds. */
  leftMs: number
}

type Answerer = Pick<FastifyRequest, 'ip' | 'clientGone' | 'work'>

export interface Challenges {
  /** A challenge for an account; `excess` are its failures beyond the bound. */
  issue(account: string, excess: number): Challenge
  /**
   * Undefined unless the answer solves a challenge of this account that has not expired. Throws
   * `unavailable` when another service does not say, and `busy` when it is asked too often at once.
   */
  check(account: string, answer: string, answerer: Answerer): Solved | undefined | Promise<Solved | undefined>
}

/** The most bits that are added where the failures of an account grow: 64 times the work. */
const GROWTH_MAX_BITS = 6
/** Failures beyond the bound that add the first bit; each further bit takes twice as many. */
const GROWTH_FAILURES = 100
const ID_BYTES = 16
const ANSWER = /^(([\w-]{22})\.(\d{10})\.(\d{1,2})\.([\w-]{43}))\.[\w-]{1,64}$/

/**
 * Proof of work (Hashcash): the client finds a text so that the SHA-256 of `<challenge>.<text>`
 * begins with enough zero bits. A challenge is `id.expiry.bits.signature`, bound to an account by
 * its signature. Redis remembers only which were used.
 */
export class ProofOfWork implements Challenges {
  readonly #keyring: Keyring
  readonly #leastBits: number
  readonly #nowMs: () => number

  /** @param options.nowMs Redis's clock */
  constructor(keyring: Keyring, { bits, nowMs }: { bits: number; nowMs(): number }) {
    this.#keyring = keyring
    this.#leastBits = bits
    this.#nowMs = nowMs
  }

  issue(account: string, excess: number) {
    const id = randomBytes(ID_BYTES).toString('base64url')
    const expiresAtS = String(Math.floor(this.#nowMs() / 1_000) + CHALLENGE_TTL_S)
    const growth = Math.floor(Math.log2(1 + Math.max(0, excess) / GROWTH_FAILURES))
    const bits = this.#leastBits + Math.min(GROWTH_MAX_BITS, growth)
    const signature = this.#macsOf(account, id, expiresAtS, String(bits))[0].toString('base64url')
    const token = `${id}.${expiresAtS}.${bits}.${signature}`
    return { kind: 'proof_of_work', token, bits, expiresIn: CHALLENGE_TTL_S } as const
  }

  check(account: string, answer: string): Solved | undefined {
    const [, token, id = '', expiresAtS = '', bits = '', signature = ''] = ANSWER.exec(answer) ?? []
    if (token === undefined) return undefined
    const leftMs = Number(expiresAtS) * 1_000 - this.#nowMs()
    if (leftMs <= 0 || zeroBitsOf(answer) < Number(bits)) return undefined
    return isSigned(this.#macsOf(account, id, expiresAtS, bits), signature) ? { id, leftMs } : undefined
  }

  #macsOf(...signed: [account: string, id: string, expiresAtS: string, bits: string]) {
    return this.#keyring.macs({ purpose: 'challenge', id: JSON.stringify(signed) })
  }
}

/** The zero bits at the beginning of the digest; at most 32 are counted. */
function zeroBitsOf(answer: string): number {
  return Math.clz32(createHash('sha256').update(answer).digest().readUInt32BE(0))
}

/** A login must not hang because another service does. */
const TIMEOUT_MS = 3_000
/** reCAPTCHA's tokens have some 2,000 characters. */
const TOKEN_MAX_LENGTH = 8_192
/** Tokens that one gateway checks at a time: some 500 a second, where an answer takes 100 ms. */
const CHECKS_MAX = 50

/**
 * The challenge of another service, such as Turnstile, hCaptcha or reCAPTCHA, which says whether
 * the client's token is valid. Their "siteverify": a form with `secret`, `response` and `remoteip`,
 * answered by JSON with `success`.
 */
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
  async check(_account: string, token: string, { ip, clientGone, work }: Answerer): Promise<Solved | undefined> {
    if (token === '' || token.length > TOKEN_MAX_LENGTH) return undefined
    if (this.#checks >= CHECKS_MAX) throw new ApiError('busy', { reason: 'too_many_waiting', retryAfterS: 1 })
    const { verifyUrl, secret } = this.#options
    this.#checks++
    // The request is not this gateway's work meanwhile.
    work?.pause()
    try {
      const isGood = await ask(verifyUrl, new URLSearchParams({ secret, response: token, remoteip: ip }), clientGone)
      // Marked as used here too: not every service takes a token once.
      return isGood ? { id: hash('sha256', token, 'base64url'), leftMs: CHALLENGE_TTL_S * 1_000 } : undefined
    } catch (error) {
      // Nobody gets the answer, and there is no failure to log.
      if (clientGone.aborted) return undefined
      throw new ApiError('unavailable', { cause: error, retryAfterS: 1 })
    } finally {
      work?.resume()
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
