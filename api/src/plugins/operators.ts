/**
 * Who may see the ops port's pages: operators with the one user name and password (RFC 7617). Compared in constant time, tried
 * a few times a minute only, and safe from other sites' pages, which the browser would send along with the credentials.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import basicAuth from '@fastify/basic-auth'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.js'

const FAILURES_ALLOWED = 10
const FAILURE_WINDOW_MS = 60_000
const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']

export interface OperatorsOptions {
  user: string
  password: string
}

export const operatorsPlugin = fp(
  async (app: FastifyInstance, { user, password }: OperatorsOptions) => {
    let failures: number[] = []

    await app.register(basicAuth, {
      authenticate: { realm: 'Spillway operators' },
      async validate(givenUser, givenPassword) {
        // Both are compared, always, so that a right name takes no other time than a wrong one.
        const right = [same(givenUser, user), same(givenPassword, password)]
        if (right.every(Boolean)) return
        failures.push(Date.now())
        throw new ApiError('operators_only')
      },
    })

    app.addHook('onRequest', async (request) => {
      const since = Date.now() - FAILURE_WINDOW_MS
      failures = failures.filter((at) => at > since)
      // One password for all, so one count for all: whoever guesses from many addresses is slowed down as well.
      if (failures.length >= FAILURES_ALLOWED)
        throw new ApiError('too_many_requests', { retryAfterS: FAILURE_WINDOW_MS / 1_000 })
      if (!SAFE_METHODS.includes(request.method) && isFromAnotherSite(request)) throw new ApiError('not_found')
    })
    app.addHook('onRequest', app.basicAuth)
  },
  { name: 'operators' },
)

function same(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
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
