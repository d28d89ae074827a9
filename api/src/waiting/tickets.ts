/**
 * Tickets: sealed promises to answer later. Every gateway can read them; nobody else can create or change one. A ticket is the job's id,
 * a dot, and the sealed contents.
 */
import { jobNames } from '@spillway/client/protocol/job'
import { checkFor } from '@spillway/client/protocol/schema'
import { type JobRef, type Keyring, SealError } from '@spillway/client/queue-client'
import { type Database, gather, Prisma, rawQuery } from '@spillway/prisma'
import type { FastifyBaseLogger } from 'fastify'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from '../problems/errors.js'

/** The longest possible ticket is a registration's, which contains an address; other tickets contain nothing that clients choose. */
export const TICKET_MAX_LENGTH = 2_048

const Contents = {
  type: 'object',
  properties: {
    /** The kind of operation, and its contents. */
    operation: { type: 'object', properties: { kind: { type: 'string' } }, required: ['kind'] },
    jobName: { enum: jobNames },
    deadline: { type: 'integer' },
    expiresAt: { type: 'integer' },
    /** The id of the Redis server that has the job, where there are several. Gateways of one Redis server seal no id. */
    server: { type: 'string', maxLength: 64 },
  },
  required: ['operation', 'jobName', 'deadline', 'expiresAt'],
  additionalProperties: false,
} as const
const isContents = checkFor<FromSchema<typeof Contents>>(Contents)

/**
 * A ticket is valid until its job's deadline by Redis's clock. Someone with access to Redis may turn that clock back and restore old
 * data, so a ticket is also invalid this long after its expiry by the gateway's own clock. The tolerance allows clocks of gateways to be
 * a minute apart.
 */
const TICKET_TOLERANCE_MS = 90_000

export interface TicketContents {
  operation: { kind: string; [name: string]: unknown }
  job: JobRef
  /** Epoch milliseconds by the wall clock of the gateway that received the request. A reissued ticket keeps it. */
  expiresAt: number
}

export interface Tickets {
  issue(ticket: TicketContents): string
  /**
   * Throws `invalid_ticket` for text that was not issued by this service, and `ticket_expired` after the expiry by this machine's clock.
   * The caller checks the deadline by Redis's clock.
   */
  read(ticket: string): TicketContents
}

export function createTickets(keyring: Keyring): Tickets {
  return {
    issue({ operation, job: { id, name, deadline, server }, expiresAt }) {
      return `${id}.${keyring.seal({ purpose: 'ticket', id }, { operation, jobName: name, deadline, expiresAt, server })}`
    },

    read(ticket) {
      const dot = ticket.indexOf('.')
      const id = ticket.slice(0, Math.max(dot, 0))
      try {
        const contents = keyring.open({ purpose: 'ticket', id }, ticket.slice(dot + 1))
        if (!isContents(contents)) throw new ApiError('invalid_ticket')
        const { operation, jobName, deadline, expiresAt, server } = contents
        if (Date.now() > expiresAt + TICKET_TOLERANCE_MS) throw new ApiError('ticket_expired')
        return {
          operation,
          job: { id, name: jobName, deadline, ...(server === undefined ? {} : { server }) },
          expiresAt,
        }
      } catch (error) {
        if (error instanceof SealError) throw new ApiError('invalid_ticket', { cause: error })
        throw error
      }
    },
  }
}

/** Pause before marks that could not be deleted are deleted again, in milliseconds. */
const RETRY_MS = 500

/** The transaction that inserted a row: no other row has it. Null where another redemption has inserted one. */
type Mark = string | null

/** A mark whose operation has failed, and which the database has not deleted yet. */
interface Kept {
  mark: string
  expiresAt: number
  error: unknown
}

/**
 * Used tickets. Of all redemptions of a ticket, at any gateways, one inserts its row, before the operation finishes. The row is in the
 * database, because a writer to Redis can put an old verdict back. It stays for as long as any gateway may take the ticket.
 */
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
   * Finishes the operation of a ticket, which is used from just before. Throws `ticket_used` where another redemption has used it. A 4xx
   * answer uses the ticket up. After any other failure it is good again, at once or when the database is back.
   */
  async useFor<Answer>({ job: { id }, expiresAt }: TicketContents, finish: () => Promise<Answer>): Promise<Answer> {
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

  /** Never rejects. A row that another redemption has inserted meanwhile, after a deletion whose answer was lost, stays. */
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
