// Stored accounts: how many have hashes of which format and cost, and all as NDJSON.
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { describeHash, NO_PASSWORD, parseStoredHash } from '@spillway/queue/wire/stored-hash'
import { createReader } from '@spillway/worker/hashing/formats/list'

const BATCH = 20_000

export async function countHashes(database: Database): Promise<[hashes: string, accounts: number][]> {
  const counts = new Map<string, number>()
  const kindOf = createKinds()
  for await (const rows of pagesOfAccounts<{ id: string; hash: string }>(
    database,
    Prisma.sql`password_hash AS hash`,
    BATCH,
  )) {
    for (const { hash } of rows) {
      const kind = kindOf(hash)
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
    }
  }
  return [...counts].sort(([, a], [, b]) => b - a)
}

/** `argon2id, m=19456,t=2,p=1`, `bcrypt, cost 12`; else the name of the format alone. */
export function createKinds(): (hash: string) => string {
  const read = createReader({ firebase: undefined, peppers: [] })
  return (hash) => {
    if (parseStoredHash(hash) !== undefined || hash === NO_PASSWORD) return describeHash(hash)
    if (hash.startsWith('$firebase-scrypt$')) return 'Firebase scrypt'
    if (hash.startsWith('$of$'))
      return `hash of what was made of the password: ${/^\$of\$([\w:,-]{1,128})\$/.exec(hash)?.[1] ?? ''}`
    return read(hash)?.format.name ?? 'no known format'
  }
}

/** By ids: accounts that are created meanwhile may be left out. `id` is the first column. */
async function* pagesOfAccounts<Row extends { id: string }>(
  database: Database,
  columns: Prisma.Sql,
  size: number,
): AsyncGenerator<Row[]> {
  let rest = Prisma.sql`TRUE`
  for (;;) {
    const sql = Prisma.sql`SELECT id, ${columns} FROM users WHERE ${rest} ORDER BY id LIMIT ${size}`
    const rows = await rawQuery<Row>(database, sql)
    yield rows
    if (rows.length < size) return
    rest = Prisma.sql`id > ${rows.at(-1)?.id}::uuid`
  }
}

const EXPORT_BATCH = 5_000

type Row = Record<'id' | 'email' | 'passwordHash' | 'createdAt', string> &
  Record<'emailConfirmedAt' | 'disabledAt', string | null>

const columns = Prisma.sql`email, password_hash AS "passwordHash", created_at AS "createdAt", email_confirmed_at AS "emailConfirmedAt",
  disabled_at AS "disabledAt"`

/** Returns how many. */
export async function exportAccounts(database: Database, to: Writable): Promise<number> {
  let count = 0
  for await (const rows of pagesOfAccounts<Row>(database, columns, EXPORT_BATCH)) {
    for (const row of rows) {
      if (!to.write(`${JSON.stringify(row)}\n`)) await once(to, 'drain')
    }
    count += rows.length
  }
  return count
}
