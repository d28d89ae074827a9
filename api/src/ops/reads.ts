/** Records in the audit which operator read what. */
import type { FastifyRequest } from 'fastify'
import type { Audit } from '../audit/recorder.js'
import type { AuditEventName } from '../audit/store.js'

/** How long the same read of an operator is not recorded again: pages are loaded again and again. */
const RECORDED_EVERY_MS = 3_600_000
/** The most reads to remember. */
const REMEMBERED_MAX = 10_000

interface RecordedRead {
  event: AuditEventName
  userId?: string
  /** What was searched for. */
  what?: string
}

export class OperatorReads {
  readonly #audit: Pick<Audit, 'record'>
  readonly #recorded = new Set<string>()
  #rememberedSince = performance.now()

  constructor(audit: Pick<Audit, 'record'>) {
    this.#audit = audit
  }

  /** Records a read, once an hour for each operator. */
  record(request: Pick<FastifyRequest, 'operator' | 'ip' | 'id'>, { event, userId, what }: RecordedRead): void {
    const { operator, ip, id: requestId } = request
    const now = performance.now()
    if (now - this.#rememberedSince > RECORDED_EVERY_MS || this.#recorded.size >= REMEMBERED_MAX) {
      this.#recorded.clear()
      this.#rememberedSince = now
    }
    const read = JSON.stringify([operator.name, event, userId, what])
    if (this.#recorded.has(read)) return
    this.#recorded.add(read)
    const by = { operator: operator.name, ...(what !== undefined && { reason: what }) }
    this.#audit.record({ event, outcome: 'ok', ...(userId !== undefined && { userId }), ip, requestId, by })
  }
}
