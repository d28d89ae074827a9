/**
 * Authentication of operators: Basic (RFC 7617) with one user name and password, compared in
 * constant time. It locks addresses out, and refuses cross-site requests, to which browsers add the
 * credentials. Without a password the port is on the loopback alone, and the Host header must be a
 * loopback name, against DNS rebinding.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import basicAuth from '@fastify/basic-auth'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { isUnsafe, siteOf } from '../plugins/cross-origin.js'
import { ApiError } from '../plugins/errors.js'

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/

interface OperatorsOptions {
  user: string
  /** Empty: no operator. */
  password: string
  /** Called for each wrong user name or password. */
  onFailure(): void
}

export const operatorsPlugin = fp(
  async (app: FastifyInstance, { user, password, onFailure }: OperatorsOptions) => {
    app.addHook('onRequest', async (request) => {
      if (isUnsafe(request) && siteOf(request) === 'other') throw new ApiError('other_site')
    })
    if (password === '') {
      app.addHook('onRequest', async ({ headers }) => {
        if (!LOOPBACK_HOST.test(headers.host ?? '')) throw new ApiError('other_site')
      })
      return
    }

    const lockout = new Lockout()
    await app.register(basicAuth, {
      authenticate: { realm: 'Spillway operators' },
      validate(givenUser, givenPassword, { ip }, _reply, done) {
        // Both are always compared, so that the time does not reveal a right name.
        const right = [same(givenUser, user), same(givenPassword, password)].every(Boolean)
        if (right) {
          lockout.succeeded(ip)
          return done()
        }
        lockout.failed(ip)
        onFailure()
        done(new ApiError('operators_only'))
      },
    })
    // Nothing is awaited between this check and `validate`: concurrent requests are counted in
    // turn.
    app.addHook('onRequest', ({ ip }, _reply, next) => {
      const lockedMs = lockout.remainingMs(ip)
      if (lockedMs === 0) return next()
      next(new ApiError('too_many_requests', { retryAfterS: Math.ceil(lockedMs / 1_000) }))
    })
    app.addHook('onRequest', app.basicAuth)
  },
  { name: 'operators' },
)

/** U+FFFD stands for invalid UTF-8, in the header and in the environment: it must not match. */
function same(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected)) && !given.includes('\ufffd')
}

const WINDOW_MS = 60_000
const FAILURES_PER_ADDRESS = 10
const FAILURES_OVERALL = 60
/** The number of known addresses to remember. */
const KNOWN_MAX = 100

/**
 * Locks an address out after a few failures within a minute. After many failures of all addresses
 * together, it locks out all that have not logged in before: they share one password. An address is
 * believed only from a proxy of TRUST_PROXY.
 */
export class Lockout {
  readonly #now: () => number
  /** Its length is bounded by the two limits: a locked-out address cannot add failures. */
  #failures: { address: string; at: number }[] = []
  readonly #known = new Set<string>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  failed(address: string): void {
    this.#failures.push({ address, at: this.#now() })
  }

  succeeded(address: string): void {
    this.#known.delete(address)
    this.#known.add(address)
    const [oldest] = this.#known
    if (this.#known.size > KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest)
  }

  /** Milliseconds until this address may try again; 0 when it may now. */
  remainingMs(address: string): number {
    this.#failures = this.#failures.filter(({ at }) => at + WINDOW_MS > this.#now())
    const own = this.#failures.filter((failure) => failure.address === address)
    const overall = this.#known.has(address) ? 0 : this.#untilBelow(this.#failures, FAILURES_OVERALL)
    return Math.max(this.#untilBelow(own, FAILURES_PER_ADDRESS), overall)
  }

  #untilBelow(counted: { at: number }[], limit: number): number {
    const decisive = counted.at(-limit)
    return decisive === undefined ? 0 : decisive.at + WINDOW_MS - this.#now()
  }
}
