/**
 * How refresh and device tokens are carried: in bodies and a header, or as cookies. POST
 * /v1/token/refresh and POST /v1/logout take refresh tokens.
 */
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { FromSchema } from 'json-schema-to-ts'
import { isUnsafe, siteOf } from '../http/cross-origin.js'
import { ApiError } from '../http/problems.js'
import { storedNetworkOf } from '../http/requests.js'
import { DEVICE_COOKIE } from '../limits/guessing.js'
import { bodyProblems, type DeviceBody, limitProblem, TokenBody, unauthorizedProblem } from '../schemas/responses.js'
import type { RoutePlugin } from '../servers.js'

/** Browsers accept the prefix only over TLS, only for this host (RFC 6265bis, 4.1.3.2). */
const SESSION_COOKIE = '__Host-spillway-session'
const IN_COOKIES = new RegExp(`(?:^|; *)${SESSION_COOKIE}=([\\w.-]+)`)

export type Tokens = FromSchema<typeof TokenBody>
type KnownDevice = FromSchema<typeof DeviceBody>
export type Headers = Record<string, string | string[]>

export interface TokenCarrier {
  isCookie: boolean
  /** The refresh token of a request; empty if it has no token. */
  shownBy(request: FastifyRequest): string
  answer(tokens: Tokens): { headers: Headers; body: Tokens }
  /** The answer of a call that makes the device known and opens no session. */
  device(known: KnownDevice): { headers: Headers; body: KnownDevice }
  /** The headers of an answer that ends the session. */
  ended: Headers
}

export const inBodies: TokenCarrier = {
  isCookie: false,
  shownBy: ({ body }) =>
    typeof body === 'object' && body !== null && 'refreshToken' in body ? String(body.refreshToken) : '',
  answer: (body) => ({ headers: {}, body }),
  device: (body) => ({ headers: {}, body }),
  ended: {},
}

/** @param lives of an unused session and of a device token, in seconds */
export function inCookies(lives: { sessionS: number; deviceS: number }): TokenCarrier {
  return {
    isCookie: true,
    shownBy: ({ headers }) => refreshTokenIn(headers.cookie),
    answer({ refreshToken, deviceToken, ...body }) {
      const session = refreshToken && cookie(SESSION_COOKIE, refreshToken, lives.sessionS)
      const device = deviceToken && cookie(DEVICE_COOKIE, deviceToken, lives.deviceS)
      return { headers: { 'set-cookie': [session, device].filter((text) => text !== undefined) }, body }
    },
    device: ({ deviceToken = '' }) => ({
      headers: { 'set-cookie': cookie(DEVICE_COOKIE, deviceToken, lives.deviceS) },
      body: {},
    }),
    ended: { 'set-cookie': cookie(SESSION_COOKIE, '', 0) },
  }
}

/** The refresh token in the cookies of a request; empty if it is not there. */
function refreshTokenIn(cookies = ''): string {
  return IN_COOKIES.exec(cookies)?.[1] ?? ''
}

function cookie(name: string, value: string, maxAgeS: number): string {
  return `${name}=${value}; Max-Age=${maxAgeS}; Path=/; Secure; HttpOnly; SameSite=Strict`
}

// If sessions are cookies, a request that changes anything must come from a page of this origin or
// of CORS_ORIGINS. SameSite=Strict does not stop other hosts of the same site, or a page that logs
// users in to another account.

interface OwnPagesOptions {
  /** CORS_ORIGINS. */
  origins: readonly string[]
  /** ISSUER. Behind a proxy that replaces Host, its origin is the origin of this API. */
  issuer: string
}

export const ownPagesPlugin = fp(
  async (app: FastifyInstance, { origins, issuer }: OwnPagesOptions) => {
    const allowed = new Set(URL.canParse(issuer) ? [...origins, new URL(issuer).origin] : origins)
    app.addHook('onRequest', async (request) => {
      const { origin, cookie } = request.headers
      const site = siteOf(request)
      // A cookie without either header: a very old browser, and an unknown page.
      const isOther = site === 'other' || (site === 'unknown' && refreshTokenIn(cookie) !== '')
      if (isUnsafe(request) && isOther && !(origin !== undefined && allowed.has(origin)))
        throw new ApiError('other_site')
    })
  },
  { name: 'own-pages' },
)

const RefreshTokenBody = {
  title: 'RefreshToken',
  ...objectOf({ refreshToken: { type: 'string', minLength: 1, maxLength: 256 } }),
} as const

export const tokenRoutes: RoutePlugin = async (app, { sessions, tokenIssuer, tokenCarrier, audit, limits }) => {
  const { isCookie, shownBy } = tokenCarrier
  const body = isCookie ? {} : { body: RefreshTokenBody }
  app.addHook('preHandler', async (request) => {
    request.sessionId = sessions.idOf(shownBy(request))
  })
  /** Runs before anything is counted, so that a made-up token costs neither a count nor a query. */
  const requireRefreshToken = async ({ sessionId }: FastifyRequest) => {
    if (sessionId === undefined) throw new ApiError('invalid_refresh_token')
  }

  app.post(
    '/v1/token/refresh',
    {
      config: { priority: 'continued', event: 'refresh_token_reuse' },
      schema: {
        operationId: 'refreshTokens',
        tags: ['Sessions'],
        summary: 'Exchange a refresh token for new tokens',
        description:
          'The old token becomes invalid. For some seconds it still returns the same successor, for concurrent requests. After a lost answer, it ' +
          'does so from the same network until the successor is used. Any other use of the old token ends the session.',
        ...body,
        response: { 200: TokenBody, 401: unauthorizedProblem, 429: limitProblem, ...bodyProblems },
      },
      preHandler: [requireRefreshToken, limits.refreshNetwork, limits.session],
    },
    async (request, reply) => {
      const { ip, id: requestId } = request
      const refreshed = await sessions.refresh({ token: shownBy(request), network: storedNetworkOf(ip) })
      if (refreshed === 'invalid') throw new ApiError('invalid_refresh_token')
      if ('refreshToken' in refreshed) {
        const { headers, body } = tokenCarrier.answer(await tokenIssuer.issue(refreshed))
        return reply.headers(headers).send(body)
      }
      audit.record({ event: 'refresh_token_reuse', outcome: 'refresh_token_reused', ...refreshed, ip, requestId })
      throw new ApiError('invalid_refresh_token', { reason: 'refresh_token_reused' })
    },
  )

  app.post(
    '/v1/logout',
    {
      config: { priority: 'continued', event: 'logout' },
      schema: {
        operationId: 'logout',
        tags: ['Sessions'],
        summary: 'End the session of a refresh token',
        description: 'The answer is also 204 for an unknown or invalid token.',
        ...body,
        response: { 204: { type: 'null' }, 429: limitProblem, ...bodyProblems },
      },
      preHandler: async (request, reply) => {
        if (request.sessionId !== undefined) await limits.refreshNetwork(request, reply)
      },
    },
    async (request, reply) => {
      const { ip, id: requestId } = request
      const ended = await sessions.end(shownBy(request))
      if (ended !== undefined) audit.record({ event: 'logout', outcome: 'ok', ...ended, ip, requestId })
      return reply.code(204).headers(tokenCarrier.ended).send(null)
    },
  )
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Of the refresh token that was shown. */
    sessionId?: string | undefined
  }
}
