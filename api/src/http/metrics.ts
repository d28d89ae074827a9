/** The metrics of a gateway, with Prometheus's naming and units (seconds). No label's values grow with users. */
import { lanes } from '@spillway/client/protocol/job'
import { createRegistry } from '@spillway/worker/registry'
import { Counter, Histogram, type Registry } from 'prom-client'
import { refusalReasons } from '../problems/errors.js'
import { outcomeOf, type RequestOutcome } from '../schemas/outcomes.js'

export interface GatewayMetrics {
  registry: Registry
  requests: Counter<'method' | 'route' | 'status' | 'outcome'>
  requestDuration: Histogram<'method' | 'route'>
  wait: Histogram<'operation' | 'outcome'>
  tickets: Counter<'event'>
  refused: Counter<'reason'>
  loginAttempts: Counter<'device'>
  attacksNoticed: Counter<'kind'>
  jobsAdded: Counter<'lane'>
  cancelled: Counter
  verdicts: Counter<'source'>
  jobsAddedAgain: Counter
  jobsMoved: Counter
  sealFailures: Counter<'purpose'>
  operatorFailures: Counter
  auditEvents: Counter<'result'>
  mails: Counter<'outcome'>
}

/** What became of a mail. `nobody`: there was nobody to send it to; `failed`: not sent, and not tried again. */
const mailOutcomes = ['sent', 'nobody', 'expired', 'retried', 'failed', 'forged'] as const
export type MailOutcome = (typeof mailOutcomes)[number]

const DURATION_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 8, 10, 30]

/** Outcomes of a wait for a verdict: the verdict, a ticket, the client disconnected, or Redis failed. */
const waitOutcomes = ['answered', 'ticket', 'client_gone', 'failed'] as const
export type WaitOutcome = (typeof waitOutcomes)[number]

const ticketEvents = ['issued', 'redeemed', 'pending', 'expired', 'lost', 'used', 'invalid'] as const
export type TicketEvent = (typeof ticketEvents)[number]

/** What became of audit events: a row each, one of many in a row, or lost without room or a database. */
const auditResults = ['written', 'added_up', 'dropped'] as const

/** How a verdict arrived: announced, or found by asking Redis because no announcement came. */
const verdictSources = ['message', 'asked'] as const

/**
 * Creates a registry that includes Node's and the process's metrics. Foreseeable series start at 0.
 *
 * @param operations the kinds of operations, as labels
 */
export function createGatewayMetrics(operations: readonly string[]): GatewayMetrics {
  const registry = createRegistry()
  const registers = [registry]
  const metrics: GatewayMetrics = {
    registry,
    requests: new Counter({
      name: 'spillway_http_requests_total',
      help: "Requests answered, by route and outcome: ok, ticket, failing, client_gone, or a problem's code",
      labelNames: ['method', 'route', 'status', 'outcome'],
      registers,
    }),
    requestDuration: new Histogram({
      name: 'spillway_http_request_duration_seconds',
      help: 'Time from the head of a request to the end of its answer',
      labelNames: ['method', 'route'],
      buckets: DURATION_BUCKETS_S,
      registers,
    }),
    wait: new Histogram({
      name: 'spillway_wait_seconds',
      help: 'Time that a request was held for its verdict, by how the wait ended',
      labelNames: ['operation', 'outcome'],
      buckets: DURATION_BUCKETS_S,
      registers,
    }),
    tickets: new Counter({
      name: 'spillway_tickets_total',
      help: 'Tickets given out, and what became of each attempt to redeem one',
      labelNames: ['event'],
      registers,
    }),
    refused: new Counter({
      name: 'spillway_refused_total',
      help: 'Requests refused, by reason',
      labelNames: ['reason'],
      registers,
    }),
    loginAttempts: new Counter({
      name: 'spillway_login_attempts_total',
      help: 'Logins let in: from a known device, from an unknown one, or from one that solved a challenge',
      labelNames: ['device'],
      registers,
    }),
    attacksNoticed: new Counter({
      name: 'spillway_attacks_noticed_total',
      help: 'Networks that tried many accounts in vain, and passwords that were tried on many, once in ten minutes each',
      labelNames: ['kind'],
      registers,
    }),
    jobsAdded: new Counter({
      name: 'spillway_jobs_added_total',
      help: 'Jobs for which requests were admitted, by lane: known devices, held, deferred with a ticket, or behind',
      labelNames: ['lane'],
      registers,
    }),
    cancelled: new Counter({
      name: 'spillway_jobs_cancelled_total',
      help: 'Jobs removed from the queue before they began, because their client went away',
      registers,
    }),
    verdicts: new Counter({
      name: 'spillway_verdicts_total',
      help: 'Verdicts received, by how they got here',
      labelNames: ['source'],
      registers,
    }),
    jobsAddedAgain: new Counter({
      name: 'spillway_jobs_added_again_total',
      help: 'Jobs that Redis lost while they were waited for, added again',
      registers,
    }),
    jobsMoved: new Counter({
      name: 'spillway_jobs_moved_total',
      help: 'Waiting jobs added to another Redis server, because theirs did not answer',
      registers,
    }),
    sealFailures: new Counter({
      name: 'spillway_seal_failures_total',
      help: 'Sealed values that did not open: forged, swapped, damaged, or of an unknown key',
      labelNames: ['purpose'],
      registers,
    }),
    operatorFailures: new Counter({
      name: 'spillway_operator_login_failures_total',
      help: 'Wrong user names or passwords at the ops port',
      registers,
    }),
    auditEvents: new Counter({
      name: 'spillway_audit_events_total',
      help: 'Audit events, by what became of them',
      labelNames: ['result'],
      registers,
    }),
    mails: new Counter({
      name: 'spillway_mails_total',
      help: 'Mails, by outcome: sent, for nobody, over the limit of the reader, expired, to be tried again, failed',
      labelNames: ['outcome'],
      registers,
    }),
  }
  for (const operation of operations) for (const outcome of waitOutcomes) metrics.wait.zero({ operation, outcome })
  for (const event of ticketEvents) metrics.tickets.inc({ event }, 0)
  for (const reason of refusalReasons) metrics.refused.inc({ reason }, 0)
  for (const result of auditResults) metrics.auditEvents.inc({ result }, 0)
  for (const device of ['known', 'unknown', 'solved']) metrics.loginAttempts.inc({ device }, 0)
  for (const lane of lanes) metrics.jobsAdded.inc({ lane }, 0)
  for (const kind of ['network', 'password']) metrics.attacksNoticed.inc({ kind }, 0)
  for (const source of verdictSources) metrics.verdicts.inc({ source }, 0)
  for (const outcome of [...mailOutcomes, 'limited', 'not_queued']) metrics.mails.inc({ outcome }, 0)
  for (const purpose of ['verdict', 'ticket']) metrics.sealFailures.inc({ purpose }, 0)
  return metrics
}

// The outcomes of requests to the public API and the service API, for the live page.

export const outcomeNames: readonly RequestOutcome[] = [
  'answered',
  'ticket',
  'rejected',
  'refused',
  'overloaded',
  'failed',
  'gone',
]
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

/** Combines two counts outcome by outcome. */
export function combineOutcomes(
  a: RequestOutcomes,
  b: RequestOutcomes,
  combine: (a: number, b: number) => number,
): RequestOutcomes {
  const result = { ...noOutcomes }
  for (const outcome of outcomeNames) result[outcome] = combine(a[outcome], b[outcome])
  return result
}
