/** What fails now and why, for the top of the live page. Each finding names its runbook. */
import type { QueueReport } from '@spillway/queue/report'
import type { RefusalReason } from '../http/problems.js'
import type { MailState } from '../mail/outbox.js'

interface Cause {
  level: 'bad' | 'warn'
  /** Contains no number, so that it changes only with the state. */
  title: string
  /** The name of an alert, which is a section of infra/grafana/ALERTS.md. */
  runbook: string
}

export interface Finding extends Cause {
  detail: string
}

const bad = (title: string, runbook: string): Cause => ({ level: 'bad', title, runbook })
const warn = (title: string, runbook: string): Cause => ({ level: 'warn', title, runbook })
const queueFull = warn('The queue is full', 'SpillwayAtMaximumWithBacklog')
const limited = warn('Rate limits refuse requests', 'SpillwayPasswordGuessing')
const guessed = warn('Accounts are guarded against guessing', 'SpillwayPasswordGuessing')

/** By the reason of the metrics. A wrong password is not a failure. */
const causes: Partial<Record<RefusalReason | 'internal_error', Cause>> = {
  internal_error: bad('Internal errors', 'SpillwayLoginErrorBudgetBurnsFast'),
  database: bad('PostgreSQL does not answer', 'SpillwayLoginErrorBudgetBurnsFast'),
  redis: bad('Requests fail for lack of Redis', 'SpillwayRedisUnreachable'),
  unsupported_hash: bad('No worker verifies a stored hash', 'SpillwayHashingFails'),
  gateway_overloaded: warn('This gateway is overloaded', 'SpillwayGatewayOverloaded'),
  predicted_wait: queueFull,
  too_many_waiting: queueFull,
  address_limit: limited,
  account_limit: limited,
  session_limit: limited,
  service_limit: limited,
  mail_limit: limited,
  guesses_delayed: guessed,
  refresh_token_reused: warn('Used refresh tokens came again', 'SpillwayRefreshTokensReused'),
}

/** A shorter delay is not reported. */
const TOLD_DELAY_MS = 100

interface State {
  /** Undefined while Redis does not answer. */
  report: QueueReport | undefined
  /** Undefined also if no mail is sent. */
  mails: MailState | undefined
  /** Requests to this gateway in the last minute that were refused or failed, by reason. */
  reasons: Readonly<Record<string, number>>
  /** How long requests recently waited until the gateway began with them. */
  delayMs: number
  ticketLifeMs: number
}

/** The worst come first. */
export function findingsOf(state: State): Finding[] {
  const found = [...ofQueue(state), ...ofMails(state), ...ofRequests(state)]
  return found.toSorted((a, b) => Number(a.level === 'warn') - Number(b.level === 'warn'))
}

function* ofQueue({ report, ticketLifeMs }: State): Generator<Finding> {
  if (report === undefined) {
    const detail = 'Requests that need it are told to come back'
    return yield { ...bad('Redis does not answer', 'SpillwayRedisUnreachable'), detail }
  }
  if (report.paused) {
    yield { ...bad('The queue is paused', 'SpillwayQueuePaused'), detail: 'Nobody gets in until it is resumed' }
  } else if (report.workers.length === 0) {
    yield { ...bad('No worker is alive', 'SpillwayNoWorker'), detail: 'Requests get tickets, which expire' }
  }
  const oldestMs = Math.max(report.oldestMs.open, report.oldestMs.ticketed)
  if (oldestMs > ticketLifeMs / 2) {
    const detail = `The next job has waited for ${seconds(oldestMs)}; tickets expire after ${seconds(ticketLifeMs)}`
    yield { ...bad('Tickets are about to expire', 'SpillwayOldestJob'), detail }
  }
  const { count, reason } = report.failedLately
  if (count > 0) {
    const runbook = /seal|open|malformed/.test(reason) ? 'SpillwaySealFailures' : 'SpillwayHashingFails'
    const detail = `${counted(count, 'job')} in the last minute, the latest because ${reason || 'of an unknown error'}`
    yield { ...bad('Jobs fail at workers', runbook), detail }
  }
}

function* ofMails({ mails }: State): Generator<Finding> {
  if (mails?.isPaused) {
    const detail = 'Nobody gets a mail until it is resumed on the board'
    yield { ...bad('The queue of mails is paused', 'SpillwayQueuePaused'), detail }
  }
  if (mails?.lastReason !== undefined)
    yield { ...warn('Mails are not sent, and tried again', 'SpillwayMailsNotSent'), detail: mails.lastReason }
}

function* ofRequests({ reasons, delayMs }: State): Generator<Finding> {
  for (const cause of new Set(Object.values(causes))) {
    const counts = Object.entries(causes).map(([reason, of]) => (of === cause ? (reasons[reason] ?? 0) : 0))
    const count = counts.reduce((sum, each) => sum + each)
    if (count === 0) continue
    const isSlow = cause === causes.gateway_overloaded && delayMs >= TOLD_DELAY_MS
    const delay = isSlow ? `, and requests wait ${seconds(delayMs)}` : ''
    yield { ...cause, detail: `${counted(count, 'request')} to this gateway in the last minute${delay}` }
  }
}

function counted(count: number, one: string): string {
  return `${count.toLocaleString('en')} ${one}${count === 1 ? '' : 's'}`
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
