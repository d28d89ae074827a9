/**
 * Reads of operators. Searches run one after the other for each operator, so that no operator takes all
 * connections. Exports are paced. The audit records who read what.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import type { Audit } from '../audit/recorder.js'
import type { AuditEventName } from '../audit/store.js'
import { ApiError } from '../http/problems.js'

/** The rows of a page of an export, which delays logins by about 2 ms. */
const PAGE = 100
/** The longest rest after a page, in milliseconds. */
const REST_MAX_MS = 100
/** How long the same read of an operator is not recorded again: pages are loaded again and again. */
const RECORDED_EVERY_MS = 3_600_000
/** The most reads to remember. */
const REMEMBERED_MAX = 10_000

interface Reader {
  operator: { name: string }
  clientGone: AbortSignal
}

export interface Page {
  /** The id after which the page begins [the list's first]. */
  before?: string | undefined
  limit: number
}

export class OperatorReads {
  readonly #audit
  /** By the name of an operator: the end of the last read. */
  readonly #last = new Map<string, Promise<void>>()
  /** The rest after the last page of an export. */
  #lastPage: Promise<unknown> = Promise.resolve()
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

  /**
   * Reads all pages of a list with ids, for an export. The last page is shorter. Pages of all exports are
   * read one after the other, and each is followed by a rest as long as it took: in between, logins go on.
   */
  async *pages<Row extends { id: string }>(read: (page: Page) => Promise<Row[]>): AsyncGenerator<Row[]> {
    let before: string | undefined
    do {
      const page = this.#lastPage.then(async () => {
        const startMs = performance.now()
        const rows = await read({ before, limit: PAGE })
        await sleep(Math.min(performance.now() - startMs, REST_MAX_MS))
        return rows
      })
      this.#lastPage = page.catch(() => undefined)
      const rows = await page
      yield rows
      before = rows.length < PAGE ? undefined : rows.at(-1)?.id
    } while (before !== undefined)
  }

  /** Records a read of an account, or a search with the conditions as its reason: once an hour for each operator. */
  record(
    { operator, ip, id: requestId }: Pick<FastifyRequest, 'operator' | 'ip' | 'id'>,
    about: { event: AuditEventName; userId?: string; reason?: string },
  ): void {
    const now = performance.now()
    if (now - this.#rememberedSince > RECORDED_EVERY_MS || this.#recorded.size >= REMEMBERED_MAX) {
      this.#recorded.clear()
      this.#rememberedSince = now
    }
    const read = JSON.stringify([operator.name, about])
    if (this.#recorded.has(read)) return
    this.#recorded.add(read)
    this.#audit.record({ ...about, outcome: 'ok', ip, requestId, operator: operator.name })
  }
}
