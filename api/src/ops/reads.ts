/**
 * Reads of operators. Long ones run one after the other for each operator, so that no operator takes all
 * connections. The audit records who read what.
 */
import type { FastifyRequest } from 'fastify'
import type { Audit } from '../audit/recorder.js'
import type { AuditEventName } from '../audit/store.js'
import { ApiError } from '../http/errors.js'

/** How long the same read of an operator is not recorded again: pages are loaded again and again. */
const RECORDED_EVERY_MS = 3_600_000
/** The most reads to remember. */
const REMEMBERED_MAX = 10_000

interface Reader extends Pick<FastifyRequest, 'clientGone'> {
  operator: Pick<FastifyRequest['operator'], 'name'>
}

interface RecordedRead {
  event: AuditEventName
  userId?: string
  /** What was searched for. */
  what?: string
}

export class OperatorReads {
  readonly #audit: Pick<Audit, 'record'>
  /** By the name of an operator: the end of the last read. */
  readonly #last = new Map<string, Promise<void>>()
  readonly #recorded = new Set<string>()
  #rememberedSince = performance.now()

  constructor(audit: Pick<Audit, 'record'>) {
    this.#audit = audit
  }

  /** Runs a read after the earlier reads of its operator, unless its client has gone by then. */
  next<T>({ operator: { name }, clientGone }: Reader, read: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(name) ?? Promise.resolve()).then(() => {
      if (clientGone.aborted) throw new ApiError('unavailable')
      return read()
    })
    const end = () => {
      if (this.#last.get(name) === over) this.#last.delete(name)
    }
    const over = turn.then(end, end)
    this.#last.set(name, over)
    return turn
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
