/** Records requests that a limit refused, and those that were told to solve a challenge. */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Audit } from './events.js'

export const auditRateLimitsPlugin = fp(
  async (app: FastifyInstance, { audit }: { audit: Audit }) => {
    app.addHook('onResponse', ({ errorCode, refusedFor, user, ip }, _reply, next) => {
      const isLimited = errorCode === 'too_many_requests' || errorCode === 'challenge_required'
      // There is no user before the access token is verified.
      if (isLimited && refusedFor !== undefined)
        audit.record({ event: 'rate_limit', outcome: refusedFor, userId: user?.sub ?? null, address: ip })
      next()
    })
  },
  { name: 'audit-rate-limits' },
)
