// Reads all accounts, page by page, so that no statement takes long.
import { type Database, Prisma, rawQuery } from '@spillway/prisma'

/** In the order of ids: accounts that are created meanwhile may be among them or not. `id` is the first column. */
export async function* pagesOfAccounts<Row extends { id: string }>(
  database: Database,
  columns: Prisma.Sql,
  size: number,
): AsyncGenerator<Row[]> {
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const sql = Prisma.sql`SELECT id, ${columns} FROM users WHERE id > ${after}::uuid ORDER BY id LIMIT ${size}`
    const rows = await rawQuery<Row>(database, sql)
    yield rows
    if (rows.length < size) return
    after = rows.at(-1)?.id ?? after
  }
}
