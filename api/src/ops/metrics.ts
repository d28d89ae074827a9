/** The metrics of a gateway, named as Prometheus recommends. No label has a value for each user. */

import { Metrics } from '@spillway/common/metrics'
import type { Histogram } from 'prom-client'
import { refusalReasons } from '../http/problems.js'

/** The outcome of a mail. `nobody`: it had no recipient; `failed`: it is not retried. */
const mailOutcomes = ['sent', 'nobody', 'expired', 'retried', 'failed', 'forged'] as const
export type MailOutcome = (typeof mailOutcomes)[number]

const DURATION_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 8, 10, 30]

const ticketEvents = ['issued', 'redeemed', 'pending', 'expired', 'used', 'invalid'] as const
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
  readonly hold: Histogram<'endpoint' | 'outcome'>
  readonly tickets = this.counter(
    'spillway_tickets_total',
    'Tickets given out, and what became of each attempt to redeem one',
    { event: ticketEvents },
  )
  readonly refused = this.counter('spillway_refused_total', 'Requests refused, by reason', { reason: refusalReasons })
  readonly loginAttempts = this.counter(
    'spillway_login_attempts_total',
    'Logins let in, from a known device or from an unknown one',
    { device: ['known', 'unknown'] },
  )
  readonly jobsAdded = this.counter(
    'spillway_jobs_added_total',
    'Jobs added to the queue, by place: first (of a known device), open, or ticketed',
    { place: ['first', 'open', 'ticketed'] },
  )
  readonly cancelled = this.counter(
    'spillway_jobs_cancelled_total',
    'Jobs removed from the queue before they began, because their client went away',
  )
  readonly results = this.counter('spillway_results_total', 'Results received, by how they got here', {
    // Announced, or read from Redis because no announcement came.
    source: ['message', 'read'],
  })
  readonly sealFailures = this.counter(
    'spillway_seal_failures_total',
    'Sealed values that did not open: forged, swapped, damaged, or of an unknown key',
    { purpose: ['result', 'ticket'] },
  )
  readonly operatorFailures = this.counter(
    'spillway_operator_login_failures_total',
    'Wrong user names or passwords at the ops port',
  )
  readonly auditEvents = this.counter('spillway_audit_events_total', 'Audit events, by what became of them', {
    // Written as a row, added to the sum of a row, or lost.
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

  constructor(endpoints: readonly string[]) {
    super()
    this.hold = this.histogram(
      'spillway_hold_seconds',
      'Time that a request was held for its result, by how the hold ended',
      DURATION_BUCKETS_S,
      { endpoint: endpoints, outcome: ['answered', 'ticket', 'client_gone', 'failed'] },
    )
  }
}
