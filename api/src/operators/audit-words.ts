/** Audit events as sentences that a person can read. */
import type { StoredEvent } from '../audit/store.js'
import type { GatewayConfig } from '../config.js'
import type { RefusalReason } from '../plugins/errors.js'
import { UNDELAYED_SHARE } from '../plugins/guessing/attempts.js'
import { problems } from '../schemas/problem-codes.js'

const reasons: Record<RefusalReason, string> = {
  predicted_wait: 'refused: the line is longer than a ticket lives',
  too_many_waiting: 'refused: too many wait',
  gateway_overloaded: 'refused: the gateway was overloaded',
  address_limit: 'refused: too many failures from this network within a minute',
  account_limit: 'refused: too many requests for this account within a minute',
  guesses_delayed: 'refused for a while: too many wrong passwords for this account',
  guesses_challenged: 'refused: a challenge must be solved, after too many wrong passwords for this account',
  session_limit: 'refused: this session refreshes too often',
  service_limit: 'refused: the application asks too often',
  mail_limit: 'refused: too many mails',
  ticket_held: 'refused: too many requests wait with this ticket',
  old_system: 'the old system did not answer',
  redis: 'Redis did not answer',
  database: 'the database did not answer',
  wrong_password: 'wrong password',
  unknown_account: 'no account has this address',
  account_barred: 'the account is disabled, or its address is not confirmed',
  network_blocked: 'refused: operators have blocked this network',
  unsupported_hash: 'no worker verifies the stored hash of this account',
  password_changed: 'the password was changed meanwhile',
  refresh_token_reused: 'a used refresh token came again: the session was ended',
}

type Limits = Pick<GatewayConfig, 'GUESSES_PER_ACCOUNT' | 'GUESSES_PER_DEVICE'>

/** `Login: wrong password, from a known device, 2 of 10 before it counts as unknown`. */
export function describeEvent(event: StoredEvent, limits: Limits): string {
  const name = event.event.replaceAll('_', ' ')
  const parts = [
    outcomeOf(event),
    ...(event.isKnownDevice === null ? [] : [event.isKnownDevice ? 'from a known device' : 'from an unknown device']),
    ...(event.failures ? [standingOf(event.failures, event.isKnownDevice === true, limits)] : []),
    ...(event.operator === null ? [] : [`by the operator ${event.operator}`]),
    ...(event.reason === null ? [] : [`“${event.reason}”`]),
    ...(event.count === 1 ? [] : [`${event.count} times, added up`]),
  ]
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}: ${parts.join(', ')}`
}

function outcomeOf({ event, outcome }: StoredEvent): string {
  if (outcome === 'ok') return event === 'login' ? 'let in' : 'done'
  if (outcome in reasons) return Object.entries(reasons).find(([reason]) => reason === outcome)?.[1] ?? outcome
  const { detail } = Object.entries(problems).find(([code]) => code === outcome)?.[1] ?? { detail: outcome }
  return `${detail.charAt(0).toLowerCase()}${detail.slice(1)}`
}

/** What so many failures in a row mean for the next attempt, by today's settings. */
function standingOf(failures: number, isKnownDevice: boolean, limits: Limits): string {
  const { GUESSES_PER_ACCOUNT: challenged, GUESSES_PER_DEVICE: forgotten } = limits
  if (challenged === 0) return `${failures} in a row`
  if (isKnownDevice) return `${failures} of ${forgotten} before it counts as unknown`
  const delayed = Math.ceil(challenged * UNDELAYED_SHARE)
  if (failures < delayed) return `${failures} of ${delayed} before a pause`
  return failures < challenged ? `${failures} of ${challenged} before a challenge` : 'a challenge comes next'
}
