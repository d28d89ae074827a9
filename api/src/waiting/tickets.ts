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

/**
 * Used tickets. Of all redemptions of a ticket, at any gateways, one inserts its row, before the operation finishes. The row is in the
 * database, because a writer to Redis can put an old verdict back. It stays for as long as any gateway may take the ticket.
 */
export interface UsedTickets {
  /** Marks the ticket of a job as used. False when another redemption has done so. */
  use(jobId: string): Promise<boolean>
  /** Makes a ticket good again whose operation has failed by itself. Never rejects: after a second failure the ticket stays used. */
  giveBack(jobId: string): Promise<void>
}

export function createUsedTickets(database: Database, log: FastifyBaseLogger): UsedTickets {
  const useAll = async (jobIds: readonly string[]): Promise<Set<unknown>> => {
    const sql = Prisma.sql`
      INSERT INTO used_tickets (job_id) SELECT unnest(${jobIds}::uuid[]) ON CONFLICT DO NOTHING RETURNING job_id`
    return new Set((await rawQuery(database, sql)).map((row) => row.job_id))
  }
  return {
    use: gather({
      one: async (jobId) => (await useAll([jobId])).has(jobId),
      async several(jobIds) {
        const used = await useAll(jobIds)
        // Of two redemptions of a ticket the first has used it.
        return jobIds.map((jobId) => used.delete(jobId))
      },
    }),
    async giveBack(jobId) {
      try {
        await rawQuery(database, Prisma.sql`DELETE FROM used_tickets WHERE job_id = ${jobId}::uuid`)
      } catch (error) {
        log.warn({ err: error, jobId }, 'a ticket whose operation failed stays used')
      }
    },
  }
}
