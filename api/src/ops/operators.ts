/**
 * Who may see the ops port's pages: operators with the one user name and password (RFC 7617). Compared in constant time, tried
 * a few times a minute only, and safe from pages of other sites, which the browser would send along with the credentials.
 * Without a password the port is on the loopback alone, and only requests that call it by a loopback name are answered, so
 * that no page can reach it under a name of its own (DNS rebinding).
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import basicAuth from '@fastify/basic-auth'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../problems/errors.js'
import { createLockout } from './lockout.js'

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']
const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/

export interface OperatorsOptions {
  user: string
  /** Empty for none. */
  password: string
  /** Told of each wrong user name or password. */
  onFailure(): void
}

export const operatorsPlugin = fp(
  async (app: FastifyInstance, { user, password, onFailure }: OperatorsOptions) => {
    app.addHook('onRequest', async (request) => {
      if (!SAFE_METHODS.includes(request.method) && isFromAnotherSite(request)) throw new ApiError('other_site')
    })
    if (password === '') {
      app.addHook('onRequest', async ({ headers }) => {
        if (!LOOPBACK_HOST.test(headers.host ?? '')) throw new ApiError('other_site')
      })
      return
    }

    const lockout = createLockout()
    await app.register(basicAuth, {
      authenticate: { realm: 'Spillway operators' },
      validate(givenUser, givenPassword, { ip }, _reply, done) {
        // Both are compared, always, so that a right name takes no other time than a wrong one.
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
    // To look, to compare and to count are one step, with nothing awaited from here to the end of `validate`: of requests that
    // come together, in one write or over many connections, each is counted before the next is looked at.
    app.addHook('onRequest', ({ ip }, _reply, next) => {
      const lockedMs = lockout.remainingMs(ip)
      if (lockedMs === 0) return next()
      next(new ApiError('too_many_requests', { retryAfterS: Math.ceil(lockedMs / 1_000) }))
    })
    app.addHook('onRequest', app.basicAuth)
  },
  { name: 'operators' },
)

/** What is no UTF-8 arrives as U+FFFD, here and in the environment, and is the same as nothing. */
function same(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected)) && !given.includes('\ufffd')
}

/** Browsers say where a request comes from (Fetch Metadata); what says nothing is no browser and has no credentials but its own. */
function isFromAnotherSite({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin'
  return (
    headers.origin !== undefined &&
    headers.origin !== `http://${headers.host}` &&
    headers.origin !== `https://${headers.host}`
  )
}
