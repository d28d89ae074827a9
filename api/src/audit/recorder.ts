/**
 * Records audit events asynchronously. `record` appends to a bounded buffer, which is written about
 * once a second and at shutdown. While the database is unavailable, the oldest events are kept, and
 * later events are dropped. An event that PostgreSQL refuses is dropped alone. All dropped events are
 * counted and logged. Refusals, and events without an account, have a budget. Beyond it they are
 * summed by event and outcome, in one row a minute for each sum.
 */

import type { Logger } from '@spillway/common/log'
import { type Database, databaseProblem, isValueRefused } from '@spillway/prisma'
import { newId } from '@spillway/queue/wire/id'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { storedNetworkOf, toldId } from '../http/requests.js'
import type { GatewayMetrics } from '../ops/metrics.js'
import { Rounds } from '../rounds.js'
import { parseEmailAddress } from '../schemas/credentials.js'
import { type AddedEvent, type AuditEvent, deleteOldEvents, insertEvents } from './store.js'

/** About 4 MB: more than workers cause in a minute. */
const BUFFER_MAX = 10_000
/** The events of one statement, far within the statement timeout of 5 s. */
const BATCH = 1_000
const WRITE_PERIOD_MS = 1_000
const SUM_PERIOD_MS = 60_000
const DELETE_PERIOD_MS = 5 * 60_000
/**
 * Anyone can cause refusals and events without an account. These are their rows: at once, and then
 * in a second. A flood writes at most 864,000 rows a day, about 400 MB.
 */
const UNBOUNDED_AT_ONCE = 1_000
const UNBOUNDED_PER_SECOND = 10
/** Outcomes of allowed changes. An account or operator makes few of them, so they cannot flood the audit. */
const BOUNDED: readonly string[] = ['ok', 'unchanged', 'outcome_unknown']

interface AuditOptions {
  database: Database
  /** With 0, nothing is recorded or deleted. */
  retentionDays: number
  metrics: GatewayMetrics
  log: Pick<Logger, 'warn' | 'info'>
  deletePeriodMs?: number
}

/** Records from its construction on. Deletes events that are older than the retention. */
export class Audit {
  readonly #options: AuditOptions
  readonly #buffer: AddedEvent[] = []
  readonly #sums = new Map<string, AddedEvent>()
  /** Rows that events without a bound may still have, as of a time. */
  #budget = UNBOUNDED_AT_ONCE
  #budgetedAt = performance.now()
  readonly #rounds: Rounds[] = []
  #summedAt = performance.now()
  #dropped = 0
  #isFailing = false
  #isClosed: boolean

  constructor(options: AuditOptions) {
    this.#options = options
    const { database, retentionDays, log, deletePeriodMs = DELETE_PERIOD_MS } = options
    this.#isClosed = retentionDays === 0
    if (this.#isClosed) return
    const writing = new Rounds({
      periodMs: WRITE_PERIOD_MS,
      round: async () => {
        if (performance.now() - this.#summedAt >= SUM_PERIOD_MS) this.#pushSums()
        await this.#writeAll()
      },
      onFailure: (error) => {
        if (!this.#isFailing)
          log.warn({ err: error }, 'audit events cannot be written: they are kept while there is room')
        this.#isFailing = true
      },
    })
    const deleting = new Rounds({
      periodMs: deletePeriodMs,
      async round(signal) {
        while (!signal.aborted && (await deleteOldEvents(database, retentionDays)) > 0);
      },
      onFailure: (error) => log.warn({ err: error }, 'old audit events could not be deleted'),
    })
    this.#rounds.push(writing, deleting)
  }

  /** Returns at once and never throws: events are written asynchronously. */
  record(event: AuditEvent): void {
    if (this.#isClosed) return
    const isBounded = BOUNDED.includes(event.outcome) && (event.userId || event.operator)
    if (isBounded || this.#takeBudget()) this.#push(added(event))
    else this.#addUp(event)
  }

  /** How long the oldest event that is not yet written has waited, in milliseconds; 0 without one. */
  oldestMs(): number {
    const [oldest] = this.#buffer
    return oldest === undefined ? 0 : Math.max(0, Date.now() - Date.parse(oldest.at))
  }

  /** Writes what is left. Events that come later are ignored. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#rounds.map((rounds) => rounds.close()))
    this.#pushSums()
    await this.#writeAll().catch((error: unknown) => {
      this.#drop(this.#buffer.length)
      this.#options.log.warn({ err: error, dropped: this.#dropped }, 'the last audit events were not written')
    })
  }

  #takeBudget(): boolean {
    const now = performance.now()
    const refill = ((now - this.#budgetedAt) * UNBOUNDED_PER_SECOND) / 1_000
    this.#budget = Math.min(UNBOUNDED_AT_ONCE, this.#budget + refill)
    this.#budgetedAt = now
    if (this.#budget < 1) return false
    this.#budget -= 1
    return true
  }

  #drop(count: number): void {
    this.#dropped += count
    this.#options.metrics.auditEvents.inc({ result: 'dropped' }, count)
  }

  #push(event: AddedEvent): void {
    if (this.#buffer.length < BUFFER_MAX) this.#buffer.push(event)
    else this.#drop(event.count)
  }

  #addUp({ event, outcome }: AuditEvent): void {
    this.#options.metrics.auditEvents.inc({ result: 'added_up' })
    const key = `${event} ${outcome}`
    const sum = this.#sums.get(key) ?? { ...newRow(), event, outcome, count: 0 }
    sum.count += 1
    this.#sums.set(key, sum)
  }

  #pushSums(): void {
    this.#summedAt = performance.now()
    for (const sum of this.#sums.values()) this.#push(sum)
    this.#sums.clear()
  }

  async #writeAll(): Promise<void> {
    const { log } = this.#options
    while (this.#buffer.length > 0) {
      const batch = this.#buffer.slice(0, BATCH)
      const written = await this.#write(batch)
      this.#buffer.splice(0, batch.length)
      this.#options.metrics.auditEvents.inc({ result: 'written' }, written)
    }
    if (this.#dropped > 0) log.warn({ dropped: this.#dropped }, 'audit events were dropped: there was no room for them')
    if (this.#isFailing) log.info({}, 'audit events are written again')
    this.#isFailing = false
    this.#dropped = 0
  }

  /** Writes the events separately if PostgreSQL refuses a value. Resolves with how many it wrote. */
  async #write(batch: readonly AddedEvent[]): Promise<number> {
    const { database, metrics, log } = this.#options
    try {
      await insertEvents(database, batch)
      return batch.length
    } catch (error) {
      if (!isValueRefused(error)) throw error
      const [{ id, event, outcome } = {}] = batch
      if (batch.length === 1) {
        metrics.auditEvents.inc({ result: 'dropped' })
        log.warn({ id, event, outcome, reason: databaseProblem(error) }, 'an audit event was refused and is lost')
        return 0
      }
    }
    let written = 0
    for (const event of batch) written += await this.#write([event])
    return written
  }
}

const LIMITS = ['too_many_requests', 'network_blocked']

/** Records requests that a limit or a block refused, and changes of unknown outcome. */
export const auditRefusalsPlugin = fp(
  async (app: FastifyInstance, { audit }: { audit: Audit }) => {
    app.addHook('onResponse', (request, _reply, next) => {
      const { errorCode, refusedFor, user, sessionId, changes, body } = request
      const { event: change } = request.routeOptions.config
      if (change !== undefined && errorCode === 'outcome_unknown') {
        const whom = { userId: user?.sub ?? null, sessionId: sessionId ?? null, ...changes }
        audit.record({ event: change, outcome: errorCode, ...whom, ip: request.ip, requestId: toldId(request) })
      }
      const isLimited = LIMITS.includes(errorCode ?? '')
      if (isLimited && refusedFor !== undefined) {
        // The access token names the user, or the body does.
        const email = typeof body === 'object' && body !== null && 'email' in body ? String(body.email) : ''
        const whom = { userId: user?.sub ?? null, email: parseEmailAddress(email) }
        const event = { event: 'rate_limit', outcome: refusedFor, ...whom } as const
        // Reading the client's address costs a system call.
        audit.record({ ...event, ip: request.ip, requestId: toldId(request) })
      }
      next()
    })
  },
  { name: 'audit-refusals', dependencies: ['request-id', 'problem'] },
)

function added({ ip, ...event }: AuditEvent): AddedEvent {
  return { ...event, ...newRow(), count: 1, address: storedNetworkOf(ip) }
}

function newRow() {
  const now = Date.now()
  return { id: newId(now), at: new Date(now).toISOString() }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** What a request changes, for the audit if the outcome is unknown [what its token names]. */
    changes?: { userId?: string; sessionId?: string }
  }
}
