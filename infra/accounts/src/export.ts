// Writes all accounts as NDJSON, in the form that import reads: for leaving, or for moving between systems.
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { type Database, Prisma } from '@spillway/prisma'
import { pagesOfAccounts } from './all-accounts.ts'

const BATCH = 5_000

type Row = { id: string; email: string; passwordHash: string; createdAt: Date; emailConfirmedAt: Date | null }

const columns = Prisma.sql`email, password_hash AS "passwordHash", created_at AS "createdAt", email_confirmed_at AS "emailConfirmedAt"`

/** Returns how many. */
export async function exportAccounts(database: Database, to: Writable): Promise<number> {
  let count = 0
  for await (const rows of pagesOfAccounts<Row>(database, columns, BATCH)) {
    for (const row of rows) {
      if (!to.write(`${JSON.stringify(row)}\n`)) await once(to, 'drain')
    }
    count += rows.length
  }
  return count
}
