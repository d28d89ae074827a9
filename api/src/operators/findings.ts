/** What fails now and why, for the top of the live page. Each finding names its runbook. */
import type { QueueReport } from '@spillway/queue/jobs/report'
import type { Reason } from '../plugins/metrics.js'

export interface Finding {
  level: 'bad' | 'warn'
  /** Without a figure: it changes only with the state. */
  title: string
  detail: string
  /** The name of an alert, which is a section of infra/grafana/ALERTS.md. */
  runbook: string
}

type Cause = Pick<Finding, 'level' | 'title' | 'runbook'>
const bad = (title: string, runbook: string): Cause => ({ level: 'bad', title, runbook })
const warn = (title: string, runbook: string): Cause => ({ level: 'warn', title, runbook })
const queueFull = warn('The queue is full', 'SpillwayAtMaximumWithBacklog')
const limited = warn('Rate limits refuse requests', 'SpillwayPasswordGuessing')
const guessed = warn('Accounts are guarded against guessing', 'SpillwayPasswordGuessing')

/** By the reason of the metrics. A wrong password is no failure; gateways are named one by one. */
export const causes: Partial<Record<Reason, Cause>> = {
  internal_error: bad('Internal errors', 'SpillwayLoginErrorBudgetBurnsFast'),
  database: bad('PostgreSQL does not answer', 'SpillwayLoginErrorBudgetBurnsFast'),
  redis: bad('Requests fail for lack of Redis', 'SpillwayRedisUnreachable'),
  old_system: bad('The old system gives no verdict', 'SpillwayLoginErrorBudgetBurnsFast'),
  unsupported_hash: bad('No worker verifies a stored hash', 'SpillwayHashingFails'),
  gateway_overloaded: warn('A gateway is overloaded', 'SpillwayGatewayOverloaded'),
  predicted_wait: queueFull,
  too_many_waiting: queueFull,
  address_limit: limited,
  account_limit: limited,
  session_limit: limited,
  service_limit: limited,
  mail_limit: limited,
  guesses_delayed: guessed,
  guesses_challenged: guessed,
  refresh_token_reused: warn('Used refresh tokens came again', 'SpillwayRefreshTokensReused'),
}

/** A shorter delay of an overloaded gateway is over, or not worth a word. */
const TOLD_DELAY_MS = 100

export interface GatewayState {
  name: string
  /** How long requests waited of late until it began with them. */
  delayMs: number
  /** Its requests of the last minute that failed or were refused, by reason. */
  reasons: readonly { reason: string; count: number }[]
}

interface State {
  /** Undefined while no Redis server answers. */
  report: QueueReport | undefined
  redis: readonly { address: string; isUsable: boolean }[]
  gateways: readonly GatewayState[]
  ticketLifeMs: number
}

/** The worst come first. */
export function findingsOf(state: State): Finding[] {
  const found = [...ofQueue(state), ...ofRequests(state.gateways)]
  return found.toSorted((a, b) => Number(a.level === 'warn') - Number(b.level === 'warn'))
}

function* ofQueue({ report, redis, ticketLifeMs }: State): Generator<Finding> {
  if (report === undefined) {
    const detail = 'Requests that need it are told to come back'
    return yield { ...bad('Redis does not answer', 'SpillwayRedisUnreachable'), detail }
  }
  for (const { address } of redis.filter(({ isUsable }) => !isUsable))
    yield { ...warn('A Redis server cannot be used', 'SpillwayOneRedisLost'), detail: address }
  if (report.paused) {
    yield { ...bad('The queue is paused', 'SpillwayQueuePaused'), detail: 'Nobody gets in until it is resumed' }
  } else if (report.workers.length === 0) {
    yield { ...bad('No worker is alive', 'SpillwayNoWorker'), detail: 'Requests get tickets, which expire' }
  } else if (report.workers.every(({ fallback }) => fallback)) {
    yield { ...warn('No worker is alive', 'SpillwayNoWorker'), detail: 'Gateways hash by themselves' }
  }
  const oldestMs = Math.max(report.oldestMs.waiting, report.oldestMs.deferred)
  if (oldestMs > ticketLifeMs / 2) {
    const detail = `The next job has waited for ${seconds(oldestMs)}; tickets expire after ${seconds(ticketLifeMs)}`
    yield { ...bad('Tickets are about to expire', 'SpillwayOldestJob'), detail }
  }
  const expired = report.recent.filter(({ outcome }) => outcome === 'expired').length
  if (expired > 0) {
    const detail = `${counted(expired, 'job')} of the last ${report.recent.length}, unhashed`
    yield { ...bad('Jobs reach workers too late', 'SpillwayJobsExpire'), detail }
  }
  const { count, reason } = report.failedLately
  if (count > 0) {
    const runbook = /seal|open/.test(reason) ? 'SpillwaySealFailures' : 'SpillwayHashingFails'
    const detail = `${counted(count, 'job')} in the last minute, the latest because ${reason || 'of an unknown error'}`
    yield { ...bad('Jobs fail at workers', runbook), detail }
  }
}

function* ofRequests(gateways: readonly GatewayState[]): Generator<Finding> {
  for (const cause of new Set(Object.values(causes))) {
    const concerned = gateways.flatMap(({ name, delayMs, reasons }) => {
      const count = reasons.reduce((sum, { reason, count }) => (causeOf(reason) === cause ? sum + count : sum), 0)
      return count > 0 ? [{ name, delayMs, count }] : []
    })
    if (concerned.length === 0) continue
    const isSlow = (delayMs: number) => cause === causes.gateway_overloaded && delayMs >= TOLD_DELAY_MS
    const places = concerned.map(({ name, delayMs }) =>
      isSlow(delayMs) ? `${name}, where requests wait ${seconds(delayMs)}` : name,
    )
    const total = concerned.reduce((sum, { count }) => sum + count, 0)
    yield { ...cause, detail: `${counted(total, 'request')} in the last minute, at ${places.join(' and ')}` }
  }
}

/** Undefined for a reason of a gateway of another version. */
function causeOf(reason: string): Cause | undefined {
  return new Map<string, Cause>(Object.entries(causes)).get(reason)
}

function counted(count: number, one: string): string {
  return `${count.toLocaleString('en')} ${one}${count === 1 ? '' : 's'}`
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
