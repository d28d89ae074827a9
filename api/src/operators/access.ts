/**
 * Who an operator is, and what the role allows. An operator is named by a trusted proxy, or logs in
 * by Basic (RFC 7617): with the one password of OPS_PASSWORD, or as one of OPS_OPERATORS_FILE. Wrong
 * passwords lock addresses out. Cross-site requests, to which browsers add the credentials, are
 * refused. Where nothing of this is set the port is on the loopback alone, and the Host header must
 * be a loopback name, against DNS rebinding.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import basicAuth from '@fastify/basic-auth'
import { listOf } from '@spillway/common/settings'
import type { PasswordClient } from '@spillway/queue/queue-client'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayConfig } from '../config.js'
import { AddressRanges } from '../plugins/client-network.js'
import { isUnsafe, siteOf } from '../plugins/cross-origin.js'
import { ApiError } from '../plugins/errors.js'
import { type NamedOperators, type Operator, type Role, roles, type SharedLogins } from './named.js'

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/

const UNVERIFIED_RETRY_S = 5

interface OperatorsOptions {
  config: GatewayConfig
  passwords: PasswordClient
  /** Undefined without OPS_OPERATORS_FILE. */
  named: NamedOperators | undefined
  shared: SharedLogins
  /** Called for each wrong user name or password. */
  onFailure(): void
}

export const operatorsPlugin = fp(
  async (app: FastifyInstance, options: OperatorsOptions) => {
    app.decorateRequest('operator')
    app.addHook('onRequest', async (request) => {
      if (isUnsafe(request) && siteOf(request) === 'other') throw new ApiError('other_site')
    })
    const { OPS_USER: name, OPS_PASSWORD, OPS_PROXIES } = options.config
    if (OPS_PASSWORD !== '' || options.named !== undefined || OPS_PROXIES !== '') await authenticate(app, options)
    else
      app.addHook('onRequest', async (request) => {
        if (!LOOPBACK_HOST.test(request.headers.host ?? '')) throw new ApiError('other_site')
        request.operator = { name, role: 'admin' }
      })
    app.addHook('onRequest', async (request) => {
      const { role: needed = isUnsafe(request) ? 'admin' : 'viewer' } = request.routeOptions.config
      if (roles.indexOf(request.operator.role) < roles.indexOf(needed)) throw new ApiError('role_required')
    })
  },
  { name: 'operators' },
)

/** Sets `request.operator`, or refuses the request. */
async function authenticate(app: FastifyInstance, options: OperatorsOptions): Promise<void> {
  const { config, passwords, shared, named, onFailure } = options
  const { OPS_USER: user, OPS_PASSWORD: password } = config
  const namedByProxy = proxyOf(config)
  const lockout = new Lockout()
  await app.register(basicAuth, {
    authenticate: { realm: 'Spillway operators' },
    async validate(givenUser, givenPassword, request) {
      const { ip } = request
      // Both are always compared, so that the time does not reveal a right name.
      const right = [same(givenUser, user), same(givenPassword, password)].every(Boolean)
      if (right && password !== '') {
        request.operator = { name: user, role: 'admin' }
        return lockout.succeeded(ip)
      }
      const login = named?.loginOf(givenUser, givenPassword)
      // New credentials count as wrong until their verdict: others must not be tried meanwhile.
      const guess = login === undefined ? lockout.failed(ip) : undefined
      const found = (await (login ?? named?.logIn(givenUser, givenPassword, { passwords, shared }))) ?? 'wrong'
      if (guess !== undefined && found !== 'wrong') lockout.takeBack(guess)
      if (guess !== undefined && found === 'wrong') onFailure()
      if (found === 'wrong') throw new ApiError('operators_only')
      if (found === 'unverified') throw new ApiError('operator_unverified', { retryAfterS: UNVERIFIED_RETRY_S })
      request.operator = found
      lockout.succeeded(ip)
    },
  })
  app.addHook('onRequest', async (request) => {
    const operator = namedByProxy(request)
    if (operator !== undefined) request.operator = operator
    await named?.refresh()
  })
  // Nothing is awaited between this check and `validate`: concurrent requests are counted in turn.
  app.addHook('onRequest', (request, reply, next) => {
    if (request.operator !== undefined) return next()
    const lockedMs = lockout.remainingMs(request.ip)
    if (lockedMs === 0) return app.basicAuth(request, reply, next)
    next(new ApiError('too_many_requests', { retryAfterS: Math.ceil(lockedMs / 1_000) }))
  })
}

/** Reads whom a proxy of OPS_PROXIES names, in the headers of oauth2-proxy. */
function proxyOf({ OPS_PROXIES, OPS_GROUPS }: GatewayConfig): (request: FastifyRequest) => Operator | undefined {
  const trusted = new AddressRanges(listOf(OPS_PROXIES))
  const mapped = listOf(OPS_GROUPS)
  return ({ socket: { remoteAddress = '' }, headers }) => {
    const { 'x-forwarded-user': name, 'x-forwarded-groups': groups = '' } = headers
    if (typeof name !== 'string' || name === '' || !trusted.has(remoteAddress)) return undefined
    const held = listOf(String(groups))
    const role = roles.findLast((each) => held.some((group) => mapped.includes(`${group}:${each}`)))
    if (role === undefined) throw new ApiError('role_required')
    return { name, role }
  }
}

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

interface Failure {
  address: string
  at: number
}

/**
 * Locks an address out after a few failures within a minute. After many failures of all addresses
 * together, it locks out all that have not logged in before: they share one password. An address is
 * believed only from a proxy of TRUST_PROXY.
 */
export class Lockout {
  readonly #now: () => number
  /** Its length is bounded by the two limits: a locked-out address cannot add failures. */
  #failures: Failure[] = []
  readonly #known = new Set<string>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Returns the failure, which may be taken back. */
  failed(address: string): Failure {
    const failure = { address, at: this.#now() }
    this.#failures.push(failure)
    return failure
  }

  takeBack(failure: Failure): void {
    this.#failures = this.#failures.filter((each) => each !== failure)
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

declare module 'fastify' {
  interface FastifyRequest {
    /** Of an authenticated request of the ops port. */
    operator: Operator
  }
  interface FastifyContextConfig {
    /** The least role of an operator [viewer to read, admin to change anything]. */
    role?: Role
  }
}
