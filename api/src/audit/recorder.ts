/**
 * Records audit events asynchronously: `record` appends to a bounded buffer, which is written about once a second and at shutdown. While
 * the database is unavailable, the buffer keeps the oldest events; later events are dropped, counted and logged. Beyond their budget,
 * refusals and events without an account are summed by event and outcome, without user and address: one row a minute for each sum.
 */
import { newId } from '@spillway/client/protocol/id'
import type { Database } from '@spillway/prisma'
import type { Logger } from '@spillway/worker/log'
import type { GatewayMetrics } from '../http/metrics.js'
import { storedNetworkOf } from '../limits/client-network.js'
import { startRounds } from '../rounds.js'
import type { Audit, AuditEvent } from './events.js'
import { deleteOldEvents, insertEvents, type StoredEvent } from './store.js'

/** Some 4 MB; a minute and more of what workers hash. */
const BUFFER_MAX = 10_000
/** Events of one statement, far within the statement timeout of 5 s. */
const BATCH = 1_000
const WRITE_PERIOD_MS = 1_000
const SUM_PERIOD_MS = 60_000
const DELETE_PERIOD_MS = 5 * 60_000

export interface AuditRecorder extends Audit {
  /** Writes what is left. Events that come later are ignored. */
  close(): Promise<void>
}

/** Starts recording, and the deletion of events that are older than the retention. With a retention of 0 nothing is done. */
export function startAudit(deps: {
  database: Database
  retentionDays: number
  metrics: Pick<GatewayMetrics, 'auditEvents'>
  log: Pick<Logger, 'warn' | 'info'>
  deletePeriodMs?: number
}): AuditRecorder {
  const { database, retentionDays, metrics, log, deletePeriodMs = DELETE_PERIOD_MS } = deps
  if (retentionDays === 0) return { record() {}, async close() {} }

  const buffer: StoredEvent[] = []
  const sums = new Map<string, StoredEvent>()
  const takeFromBudget = createRefusalBudget()
  let summedAt = performance.now()
  let dropped = 0
  let isFailing = false
  let isClosed = false

  function drop(count: number): void {
    dropped += count
    metrics.auditEvents.inc({ result: 'dropped' }, count)
  }

  function push(event: StoredEvent): void {
    if (buffer.length < BUFFER_MAX) buffer.push(event)
    else drop(event.count)
  }

  function addUp({ event, outcome }: AuditEvent): void {
    metrics.auditEvents.inc({ result: 'added_up' })
    const key = `${event} ${outcome}`
    const sum = sums.get(key) ?? stored({ event, outcome }, 0)
    sum.count += 1
    sums.set(key, sum)
  }

  function pushSums(): void {
    summedAt = performance.now()
    for (const sum of sums.values()) push(sum)
    sums.clear()
  }

  async function writeAll(): Promise<void> {
    while (buffer.length > 0) {
      const batch = buffer.slice(0, BATCH)
      await insertEvents(database, batch)
      buffer.splice(0, batch.length)
      metrics.auditEvents.inc({ result: 'written' }, batch.length)
    }
    if (dropped > 0) log.warn({ dropped }, 'audit events were dropped: there was no room for them')
    if (isFailing) log.info({}, 'audit events are written again')
    isFailing = false
    dropped = 0
  }

  const writing = startRounds({
    periodMs: WRITE_PERIOD_MS,
    async round() {
      if (performance.now() - summedAt >= SUM_PERIOD_MS) pushSums()
      await writeAll()
    },
    onFailure(error) {
      if (!isFailing) log.warn({ err: error }, 'audit events cannot be written: they are kept while there is room')
      isFailing = true
    },
  })
  const deleting = startRounds({
    periodMs: deletePeriodMs,
    async round(signal) {
      while (!signal.aborted && (await deleteOldEvents(database, retentionDays)) > 0);
    },
    onFailure: (error) => log.warn({ err: error }, 'old audit events could not be deleted'),
  })

  return {
    record(event) {
      if (isClosed) return
      const isBounded = event.outcome === 'ok' && event.userId
      if (isBounded || takeFromBudget()) push(stored(event, 1))
      else addUp(event)
    },
    async close() {
      isClosed = true
      await Promise.all([writing.close(), deleting.close()])
      pushSums()
      await writeAll().catch((error: unknown) => {
        drop(buffer.length)
        log.warn({ err: error, dropped }, 'the last audit events were not written')
      })
    },
  }
}

function stored(
  { event, outcome, userId = null, sessionId, address }: Omit<AuditEvent, 'address'> & { address?: string },
  count: number,
): StoredEvent {
  const now = Date.now()
  return {
    ...{ id: newId(now), at: new Date(now), event, outcome, count, userId },
    sessionId: sessionId ?? null,
    address: address === undefined ? null : storedNetworkOf(address),
  }
}

// How many refusals, and events without an account, a gateway records one by one. Anyone can cause them, and a flood must not fill the
// disk.

/** Refusals at once, and refusals a second of a flood that lasts: 864,000 rows a day, some 220 MB. */
const BURST = 1_000
const PER_SECOND = 10

/** Returns a function that takes one from the budget, and says whether there was one left. */
function createRefusalBudget(now: () => number = () => performance.now()): () => boolean {
  let left = BURST
  let at = now()
  return () => {
    left = Math.min(BURST, left + ((now() - at) / 1_000) * PER_SECOND)
    at = now()
    if (left < 1) return false
    left -= 1
    return true
  }
}
