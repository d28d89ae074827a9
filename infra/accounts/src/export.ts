// Writes all accounts as NDJSON, in the form that import reads: for leaving, or for moving between systems.

import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'

const BATCH = 5_000

type Row = { id: string; email: string; passwordHash: string; createdAt: Date }

/** In the order of ids, in batches: accounts that are created meanwhile may be in it or not. Returns how many. */
export async function exportAccounts(database: Database, to: Writable): Promise<number> {
  let after = '00000000-0000-0000-0000-000000000000'
  for (let count = 0; ; ) {
    const sql = Prisma.sql`
      SELECT id, email, password_hash AS "passwordHash", created_at AS "createdAt"
      FROM users WHERE id > ${after}::uuid ORDER BY id LIMIT ${BATCH}`
    const rows = await rawQuery<Row>(database, sql)
    for (const row of rows) {
      if (!to.write(`${JSON.stringify(row)}\n`)) await once(to, 'drain')
    }
    count += rows.length
    after = rows.at(-1)?.id ?? after
    if (rows.length < BATCH) return count
  }
}
