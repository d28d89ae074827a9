/** The metrics of a gateway, with Prometheus's naming. No label's values grow with users. */

import { Metrics } from '@spillway/common/metrics'
import { lanes } from '@spillway/queue/wire/job'
import type { Histogram } from 'prom-client'
import { outcomeOf, type RequestOutcome } from '../schemas/outcomes.js'
import { type RefusalReason, refusalReasons } from './errors.js'

/** What became of a mail. `nobody`: it had no recipient; `failed`: not tried again. */
const mailOutcomes = ['sent', 'nobody', 'expired', 'retried', 'failed', 'forged'] as const
export type MailOutcome = (typeof mailOutcomes)[number]

const DURATION_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 8, 10, 30]

/** How a wait ended: by the verdict, by a ticket, by the client, or by Redis. */
const waitOutcomes = ['answered', 'ticket', 'client_gone', 'failed'] as const
export type WaitOutcome = (typeof waitOutcomes)[number]

const ticketEvents = ['issued', 'redeemed', 'pending', 'expired', 'lost', 'used', 'invalid'] as const
export type TicketEvent = (typeof ticketEvents)[number]

export class GatewayMetrics extends Metrics {
  readonly requests = this.counter(
    'spillway_http_requests_total',
    "Requests answered, by route and outcome: ok, ticket, failing, client_gone, or a problem's code",
    { method: [], route: [], status: [], outcome: [] },
  )
  readonly requestDuration = this.histogram(
    'spillway_http_request_duration_seconds',
    'Time from the head of a request to the end of its answer',
    DURATION_BUCKETS_S,
    { method: [], route: [] },
  )
  readonly wait: Histogram<'operation' | 'outcome'>
  readonly tickets = this.counter(
    'spillway_tickets_total',
    'Tickets given out, and what became of each attempt to redeem one',
    { event: ticketEvents },
  )
  readonly refused = this.counter('spillway_refused_total', 'Requests refused, by reason', { reason: refusalReasons })
  readonly loginAttempts = this.counter(
    'spillway_login_attempts_total',
    'Logins let in: from a known device, from an unknown one, or from one that solved a challenge',
    { device: ['known', 'unknown', 'solved'] },
  )
  readonly attacksNoticed = this.counter(
    'spillway_attacks_noticed_total',
    'Networks that tried many accounts in vain, and passwords that were tried on many, once in ten minutes each',
    { kind: ['network', 'password'] },
  )
  readonly jobsAdded = this.counter(
    'spillway_jobs_added_total',
    'Jobs for which requests were admitted, by lane: known devices, held, deferred with a ticket, or behind',
    { lane: lanes },
  )
  readonly cancelled = this.counter(
    'spillway_jobs_cancelled_total',
    'Jobs removed from the queue before they began, because their client went away',
  )
  readonly verdicts = this.counter('spillway_verdicts_total', 'Verdicts received, by how they got here', {
    // Announced, or found by asking Redis because no announcement came.
    source: ['message', 'asked'],
  })
  readonly jobsAddedAgain = this.counter(
    'spillway_jobs_added_again_total',
    'Jobs that Redis lost while they were waited for, added again',
  )
  readonly jobsMoved = this.counter(
    'spillway_jobs_moved_total',
    'Waiting jobs added to another Redis server, because theirs did not answer',
  )
  readonly sealFailures = this.counter(
    'spillway_seal_failures_total',
    'Sealed values that did not open: forged, swapped, damaged, or of an unknown key',
    { purpose: ['verdict', 'ticket'] },
  )
  readonly operatorFailures = this.counter(
    'spillway_operator_login_failures_total',
    'Wrong user names or passwords at the ops port',
  )
  readonly auditEvents = this.counter('spillway_audit_events_total', 'Audit events, by what became of them', {
    // A row each, a part of a row, or lost.
    result: ['written', 'added_up', 'dropped'],
  })
  readonly mails = this.counter(
    'spillway_mails_total',
    'Mails, by outcome: sent, for nobody, over the limit of the reader, expired, to be tried again, failed',
    { outcome: [...mailOutcomes, 'limited', 'not_queued'] },
  )
  readonly mailErrors = this.counter(
    'spillway_mail_errors_total',
    "Mails that the mail server did not take, by the kind of error and the code of the server's answer",
    { code: ['EAUTH', 'ECONNECTION', 'EENVELOPE', 'ESOCKET', 'ETIMEDOUT', 'ETLS'], answer: ['none'] },
  )

  constructor(operations: readonly string[]) {
    super()
    this.wait = this.histogram(
      'spillway_wait_seconds',
      'Time that a request was held for its verdict, by how the wait ended',
      DURATION_BUCKETS_S,
      { operation: operations, outcome: waitOutcomes },
    )
  }
}

// The outcomes of requests to the public API and the service API, for the live page.

export type RequestOutcomes = Record<RequestOutcome, number>

export const noOutcomes: RequestOutcomes = {
  ...{ answered: 0, ticket: 0, rejected: 0, refused: 0, overloaded: 0, failed: 0, gone: 0 },
}

/** Counts of this gateway since it started. */
export async function countOutcomes({
  requests,
  refused,
}: Pick<GatewayMetrics, 'requests' | 'refused'>): Promise<RequestOutcomes> {
  const totals = { ...noOutcomes }
  for (const { labels, value } of (await requests.get()).values) {
    const [outcome, status] = [String(labels.outcome), Number(labels.status)]
    if (String(labels.route).startsWith('/v1/'))
      totals[outcome === 'client_gone' ? 'gone' : outcomeOf(status, outcome)] += value
  }
  const byReason = (await refused.get()).values
  const overloaded = byReason.find(({ labels }) => labels.reason === 'gateway_overloaded')?.value ?? 0
  totals.overloaded = Math.min(overloaded, totals.refused)
  totals.refused -= totals.overloaded
  return totals
}

// Why requests were refused or failed, for the live page.

export type Reason = RefusalReason | 'internal_error'

export const noReasons: Record<string, number> = Object.fromEntries(
  ['internal_error', ...refusalReasons].map((reason) => [reason, 0]),
)

export async function countReasons({
  requests,
  refused,
}: Pick<GatewayMetrics, 'requests' | 'refused'>): Promise<Record<string, number>> {
  const totals = { ...noReasons }
  for (const { labels, value } of (await refused.get()).values) totals[String(labels.reason)] = value
  const errors = (await requests.get()).values.filter(({ labels }) => labels.outcome === 'internal_error')
  return { ...totals, internal_error: errors.reduce((sum, { value }) => sum + value, 0) }
}
