/**
 * Identifies an operator, and checks the role. A trusted proxy names the operator, or the operator
 * logs in by Basic (RFC 7617), with OPS_PASSWORD or with a token of OPS_OPERATORS_FILE. Wrong
 * passwords lock addresses out. Cross-site requests, to which browsers add the credentials, are
 * refused. Without these settings, the port is only on the loopback, and the Host header must be a
 * loopback name, against DNS rebinding.
 */
import { timingSafeEqual } from 'node:crypto'
import basicAuth from '@fastify/basic-auth'
import { listOf } from '@spillway/common/settings'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayConfig } from '../config.js'
import { isUnsafe, siteOf } from '../http/cross-origin.js'
import { ApiError } from '../http/problems.js'
import { AddressRanges, networkOf } from '../http/requests.js'
import type { OperatorDeps } from './change.js'
import { type Operator, type Role, roles, sha256 } from './named.js'

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/

/** The status of a request whose client left before the end of its answer, as in the metrics. */
const CLIENT_GONE = 499

export const operatorsPlugin = fp(
  async (app: FastifyInstance, deps: OperatorDeps) => {
    app.decorateRequest('operator')
    const logged = (request: FastifyRequest, status: number, ms?: number) => {
      const { method, routeOptions, operator, errorCode: code, log } = request
      // The live page asks each second.
      const level = routeOptions.url === '/live.json' ? 'debug' : 'info'
      log[level]({ method, route: routeOptions.url, operator: operator?.name, status, code, ms }, 'operator request')
    }
    app.addHook('onResponse', async (request, { statusCode, elapsedTime }) =>
      logged(request, statusCode, Math.round(elapsedTime)),
    )
    // Such as an export whose reader has left.
    app.onClientGone((request) => {
      if (request.operator !== undefined) logged(request, CLIENT_GONE)
    })
    app.addHook('onRequest', async (request) => {
      if (isUnsafe(request) && siteOf(request) === 'other') throw new ApiError('other_site')
    })
    const { opsUser: name, opsPassword, opsProxies } = deps.config
    if (opsPassword !== '' || deps.namedOperators !== undefined || opsProxies !== '') await authenticate(app, deps)
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
  { name: 'operators', dependencies: ['client-gone'] },
)

/** Sets `request.operator`, or refuses the request. */
async function authenticate(app: FastifyInstance, deps: OperatorDeps): Promise<void> {
  const { config, namedOperators: named, metrics } = deps
  const { opsUser: user, opsPassword: password } = config
  const namedByProxy = proxyOf(config)
  if (config.opsProxySecret === '' && config.opsProxies.includes('/'))
    app.log.warn('OPS_PROXIES is a range: every process in it can be an admin; set OPS_PROXY_SECRET')
  const lockout = new Lockout()
  await app.register(basicAuth, {
    authenticate: { realm: 'Spillway operators' },
    async validate(givenUser, givenPassword, request) {
      const network = networkOf(request.ip)
      // All are always compared, so that the time does not reveal a correct name.
      const isShared = [same(givenUser, user), same(givenPassword, password), password !== ''].every(Boolean)
      const found = named?.find(givenUser, givenPassword)
      const operator: Operator | undefined = isShared ? { name: user, role: 'admin' } : found
      if (operator === undefined) {
        lockout.failed(network)
        metrics.operatorFailures.inc()
        throw new ApiError('operators_only')
      }
      request.operator = operator
      lockout.succeeded(network)
    },
  })
  app.addHook('onRequest', async (request) => {
    const operator = namedByProxy(request)
    if (operator !== undefined) request.operator = operator
    await named?.refresh()
  })
  // No await between this check and `validate`: concurrent requests are counted one by one.
  app.addHook('onRequest', (request, reply, next) => {
    if (request.operator !== undefined) return next()
    const lockedMs = lockout.remainingMs(networkOf(request.ip))
    if (lockedMs === 0) return app.basicAuth(request, reply, next)
    next(new ApiError('too_many_requests', { retryAfterS: Math.ceil(lockedMs / 1_000) }))
  })
}

/** The longest name of an operator that a proxy sends, in characters. */
const NAME_MAX_LENGTH = 200

/** Reads the operator that a proxy of OPS_PROXIES names, from the headers of oauth2-proxy. */
function proxyOf({
  opsProxies,
  opsProxySecret,
  opsGroups,
}: GatewayConfig): (request: FastifyRequest) => Operator | undefined {
  const trusted = new AddressRanges(listOf(opsProxies))
  const mapped = listOf(opsGroups.normalize())
  return ({ socket: { remoteAddress = '' }, headers }) => {
    const { 'x-forwarded-user': user, 'x-forwarded-groups': groups = '', 'x-ops-proxy-secret': secret = '' } = headers
    if (typeof user !== 'string' || user === '' || !trusted.has(remoteAddress)) return undefined
    if (opsProxySecret !== '' && !same(decoded(String(secret)), opsProxySecret.normalize())) return undefined
    const name = decoded(user)
    if (name.length > NAME_MAX_LENGTH) throw new ApiError('malformed_request')
    const held = listOf(decoded(String(groups)))
    const role = roles.findLast((each) => held.some((group) => mapped.includes(`${group}:${each}`)))
    if (role === undefined) throw new ApiError('role_required')
    return { name, role }
  }
}

/** Node reads headers as Latin-1, and proxies send UTF-8, some with letters and accents apart. */
function decoded(header: string): string {
  const text = Buffer.from(header, 'latin1').toString().normalize()
  return text.includes('\ufffd') ? header : text
}

/** U+FFFD replaces invalid UTF-8 in the header and in the environment, so it must not match. */
function same(given: string, expected: string): boolean {
  return timingSafeEqual(sha256(given), sha256(expected)) && !given.includes('\ufffd')
}

const WINDOW_MS = 60_000
const FAILURES_PER_ADDRESS = 10
const FAILURES_OVERALL = 60
/** The number of known addresses to remember. */
const KNOWN_MAX = 100

/**
 * Locks an address out after a few failures within a minute. After many failures of all addresses
 * together, it locks out all addresses that have not logged in before, because they share one
 * password. An address is believed only from a proxy of TRUST_PROXY.
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
