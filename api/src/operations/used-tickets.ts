/**
 * Used tickets. Of all redemptions of a ticket, one inserts its row, before the operation finishes.
 * The row is in the database, because a writer to Redis can put an old verdict back.
 */
import { type Database, gather, Prisma, rawQuery } from '@spillway/prisma'
import type { FastifyBaseLogger } from 'fastify'
import { ApiError } from '../plugins/errors.js'

/** Pause before marks that could not be deleted are deleted again, in milliseconds. */
const RETRY_MS = 500

/** The transaction that inserted a row, unique; null where another redemption inserted one. */
type Mark = string | null

/** A mark whose operation has failed, and which the database has not deleted yet. */
interface Kept {
  mark: string
  expiresAt: number
  error: unknown
}

export class UsedTickets {
  readonly #database: Database
  readonly #log: FastifyBaseLogger
  readonly #use: (jobId: string) => Promise<Mark>
  readonly #kept = new Map<string, Kept>()
  #timer: NodeJS.Timeout | undefined

  constructor(database: Database, log: FastifyBaseLogger) {
    this.#database = database
    this.#log = log
    this.#use = gather({
      one: async (jobId) => (await this.#insert([jobId])).get(jobId) ?? null,
      several: async (jobIds) => {
        const marks = await this.#insert(jobIds)
        return jobIds.map((jobId) => {
          const mark = marks.get(jobId) ?? null
          // Of two redemptions of a ticket the first has used it.
          marks.delete(jobId)
          return mark
        })
      },
    })
  }

  /**
   * Finishes the operation of a job's ticket. Throws `ticket_used` where another redemption has
   * used it. A 4xx answer uses the ticket up. After any other failure it is good again, at once or
   * when the database is back.
   */
  async useFor<Answer>(id: string, expiresAt: number, finish: () => Promise<Answer>): Promise<Answer> {
    const kept = this.#kept.get(id)
    if (kept !== undefined) throw kept.error
    const mark = await this.#use(id)
    if (mark === null) throw new ApiError('ticket_used')
    try {
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

  /** Never rejects. A row that another redemption has inserted meanwhile stays. */
  async #deleteKept(): Promise<void> {
    clearTimeout(this.#timer)
    const kept = [...this.#kept]
    const [ids, marks] = [kept.map(([id]) => id), kept.map(([, { mark }]) => mark)]
    try {
      const sql = Prisma.sql`
        DELETE FROM used_tickets USING unnest(${ids}::uuid[], ${marks}::text[]) AS kept (id, mark)
        WHERE job_id = kept.id AND used_tickets.xmin::text = kept.mark`
      await rawQuery(this.#database, sql)
      for (const id of ids) this.#kept.delete(id)
    } catch (error) {
      this.#log.warn({ err: error, tickets: kept.length }, 'cannot release tickets after failed operations yet')
      for (const [id, { expiresAt }] of kept) if (Date.now() > expiresAt) this.#kept.delete(id)
      this.#timer = setTimeout(() => void this.#deleteKept(), RETRY_MS).unref()
    }
  }

  async #insert(jobIds: readonly string[]): Promise<Map<string, string>> {
    const sql = Prisma.sql`
      INSERT INTO used_tickets (job_id) SELECT unnest(${jobIds}::uuid[]) ON CONFLICT DO NOTHING
      RETURNING job_id AS id, xmin::text AS mark`
    const rows = await rawQuery<{ id: string; mark: string }>(this.#database, sql)
    return new Map(rows.map(({ id, mark }) => [id, mark]))
  }
}
