/**
 * Used tickets. Only one redemption of a ticket inserts its row, before its endpoint finishes. The
 * row is in the database, because a writer to Redis can restore an old result.
 */
import { randomUUID } from 'node:crypto'
import { againIfLost, type Database, gather, Prisma, rawQuery } from '@spillway/prisma'
import type { FastifyBaseLogger } from 'fastify'
import { ApiError } from '../http/problems.js'

/** How long to wait before marks that could not be deleted are deleted again, in milliseconds. */
const RETRY_MS = 500

/** A row of a redemption. The answer to its insert may be lost, so the redemption chooses the mark. */
interface Use {
  jobId: string
  mark: string
}

/** A mark whose redemption has failed, and which is not yet deleted from the database. */
interface Kept {
  mark: string
  expiresAt: number
  error: unknown
}

export class UsedTickets {
  readonly #database: Database
  readonly #log: FastifyBaseLogger
  /** Whether the redemption is the first. */
  readonly #use: (use: Use) => Promise<boolean>
  readonly #kept = new Map<string, Kept>()
  #timer: NodeJS.Timeout | undefined

  constructor(database: Database, log: FastifyBaseLogger) {
    this.#database = database
    this.#log = log
    this.#use = gather({
      one: async (use) => (await this.#insert([use])).has(use.mark),
      several: async (uses) => {
        // A statement cannot update a row twice. The first of several redemptions of a ticket counts.
        const firsts = new Map(uses.toReversed().map((use) => [use.jobId, use]))
        const inserted = await this.#insert([...firsts.values()])
        return uses.map(({ mark }) => inserted.has(mark))
      },
    })
  }

  /**
   * Finishes the endpoint of a job's ticket. Throws `ticket_used` if another redemption has used
   * it. A 4xx answer uses the ticket. After any other failure the ticket is valid again, at once or
   * when the database is back.
   */
  async useFor<Answer>(id: string, expiresAt: number, finish: () => Promise<Answer>): Promise<Answer> {
    const kept = this.#kept.get(id)
    if (kept !== undefined) throw kept.error
    const mark = randomUUID()
    try {
      if (!(await this.#use({ jobId: id, mark }))) throw new ApiError('ticket_used')
      return await finish()
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) throw error
      this.#kept.set(id, { mark, expiresAt, error })
      await this.#deleteKept()
      throw error
    }
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** Never rejects. A row that another redemption inserted meanwhile is not deleted. */
  async #deleteKept(): Promise<void> {
    clearTimeout(this.#timer)
    const kept = [...this.#kept]
    const [ids, marks] = [kept.map(([id]) => id), kept.map(([, { mark }]) => mark)]
    try {
      const sql = Prisma.sql`
        DELETE FROM used_tickets USING unnest(${ids}::uuid[], ${marks}::uuid[]) AS kept (id, mark)
        WHERE job_id = kept.id AND used_tickets.mark = kept.mark`
      await rawQuery(this.#database, sql)
      for (const id of ids) this.#kept.delete(id)
    } catch (error) {
      this.#log.warn({ err: error, tickets: kept.length }, 'cannot release tickets after failed operations yet')
      for (const [id, { expiresAt }] of kept) if (Date.now() > expiresAt) this.#kept.delete(id)
      this.#timer = setTimeout(() => void this.#deleteKept(), RETRY_MS).unref()
    }
  }

  /** Returns the marks of first redemptions, also of those that are inserted again after a lost answer. */
  async #insert(uses: readonly Use[]): Promise<Set<string>> {
    const [ids, marks] = [uses.map(({ jobId }) => jobId), uses.map(({ mark }) => mark)]
    const sql = Prisma.sql`
      INSERT INTO used_tickets (job_id, mark) SELECT * FROM unnest(${ids}::uuid[], ${marks}::uuid[])
      ON CONFLICT (job_id) DO UPDATE SET mark = excluded.mark WHERE used_tickets.mark = excluded.mark RETURNING mark`
    const rows = await againIfLost(() => rawQuery<{ mark: string }>(this.#database, sql))
    return new Set(rows.map(({ mark }) => mark))
  }
}
