/** How refresh and device tokens are carried: in bodies and a header, or as cookies. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { FromSchema } from 'json-schema-to-ts'
import { isUnsafe, siteOf } from '../http/cross-origin.js'
import { ApiError } from '../http/errors.js'
import { DEVICE_COOKIE } from '../limits/device-token.js'
import type { DeviceBody, TokenBody } from '../schemas/bodies.js'

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
