/** What is recorded: the names of events, and how they can end. */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { RefusalReason } from '../problems/errors.js'
import type { ErrorCode } from '../schemas/problem-codes.js'

/** Operations have their kind as their event. */
export const auditEventNames = [
  'register',
  'login',
  'change_password',
  'verify_password',
  'request_password_reset',
  'reset_password',
  'request_email_confirmation',
  'confirm_email',
  'change_email',
  'delete_account',
  'disable_account',
  'enable_account',
  'logout',
  'end_session',
  'end_other_sessions',
  'refresh_token_reuse',
  'rate_limit',
] as const
export type AuditEventName = (typeof auditEventNames)[number]

/** `ok`, or why it was refused: the reason that metrics have too, or else the code of the problem. */
export type AuditOutcome = 'ok' | RefusalReason | ErrorCode

export interface AuditEvent {
  event: AuditEventName
  outcome: AuditOutcome
  /** The account by its id alone: never by its e-mail address, or by what was typed in its place. */
  userId?: string | null
  sessionId?: string
  /** The address of the client, as the connection or the proxy reports it; its network is what is stored. */
  address: string
}

/** Where events are recorded. */
export interface Audit {
  /** Returns at once and never throws: events are written asynchronously. */
  record(event: AuditEvent): void
}

/** Records requests that a limit refused, and those that were told to solve a challenge. */
export const auditRateLimitsPlugin = fp(
  async (app: FastifyInstance, { audit }: { audit: Audit }) => {
    app.addHook('onResponse', (request, _reply, next) => {
      const { errorCode, refusedFor, user } = request
      const isLimited = errorCode === 'too_many_requests' || errorCode === 'challenge_required'
      // There is no user before the access token is verified. The address is read here alone: it costs a call of the system.
      if (isLimited && refusedFor !== undefined)
        audit.record({ event: 'rate_limit', outcome: refusedFor, userId: user?.sub ?? null, address: request.ip })
      next()
    })
  },
  { name: 'audit-rate-limits' },
)
