/**
 * Authentication of operators on the ops port: Basic authentication (RFC 7617) with one user name and password, compared in constant time.
 * It locks addresses out, and refuses cross-site requests, to which browsers add the credentials. Without a password the port is on the
 * loopback interface alone, and the Host header must be a loopback name, against DNS rebinding.
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
  /** Empty: no operator. */
  password: string
  /** Called for each wrong user name or password. */
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
    // Nothing is awaited between this check and the end of `validate`: each of many concurrent requests is counted before the next one
    // is checked.
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

/** By Fetch Metadata, else by Origin. Requests without either come from no browser, so they carry no ambient credentials. */
function isFromAnotherSite({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin'
  return (
    headers.origin !== undefined &&
    headers.origin !== `http://${headers.host}` &&
    headers.origin !== `https://${headers.host}`
  )
}
