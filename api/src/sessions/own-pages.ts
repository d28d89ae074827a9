/**
 * Where sessions are cookies, a request that changes anything must come from a page of this origin or of CORS_ORIGINS. SameSite=Strict keeps
 * other sites away and not other hosts of the same site, which may be anyone's; and no attribute keeps a page from logging somebody in as
 * somebody else.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../problems/errors.js'
import { refreshTokenIn } from './token-carrier.js'

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']

export interface OwnPagesOptions {
  /** CORS_ORIGINS. */
  origins: readonly string[]
  /** ISSUER, whose origin is ours behind a proxy that replaces Host. */
  issuer: string
}

export const ownPagesPlugin = fp(
  async (app: FastifyInstance, { origins, issuer }: OwnPagesOptions) => {
    const allowed = new Set(URL.canParse(issuer) ? [...origins, new URL(issuer).origin] : origins)
    app.addHook('onRequest', async (request) => {
      if (!SAFE_METHODS.includes(request.method) && !isOfOwnPage(request, allowed)) throw new ApiError('other_site')
    })
  },
  { name: 'own-pages' },
)

/**
 * By Origin and Fetch Metadata, which no script can set. A request with neither is from no browser, unless it has the cookie: it is refused
 * then, because a very old browser sends neither.
 */
function isOfOwnPage({ headers }: FastifyRequest, allowed: ReadonlySet<string>): boolean {
  const { origin, host, 'sec-fetch-site': site } = headers
  if (origin !== undefined && allowed.has(origin)) return true
  if (site !== undefined) return site === 'same-origin'
  if (origin !== undefined) return origin === `https://${host}` || origin === `http://${host}`
  return refreshTokenIn(headers.cookie) === ''
}
