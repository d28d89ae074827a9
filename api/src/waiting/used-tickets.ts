/**
 * Used tickets. Of all redemptions of a ticket, at any gateways, one inserts its row, before the operation finishes. The row is in the
 * database, because whoever writes to Redis can put an old verdict back. It stays for as long as any gateway may take the ticket.
 */
import { type Database, gather, Prisma, rawQuery } from '@spillway/prisma'
import type { FastifyBaseLogger } from 'fastify'

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
