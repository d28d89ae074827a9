/** What is recorded: the names of events, and how they can end. */
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
