// How many accounts have hashes of which format and cost.
import { ASK_OLD_SYSTEM, parseStoredHash } from '@spillway/client/protocol/stored-hash'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { createReader } from '@spillway/worker/hashing/formats/list'

const BATCH = 20_000

/** By the format of a hash, and its cost if it is one of new hashes; the most first. */
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
    const stored = parseStoredHash(hash)
    if (stored?.algorithm === 'bcrypt') return `bcrypt, cost ${stored.cost}`
    if (stored !== undefined)
      return `${stored.algorithm}, m=${stored.memoryKib},t=${stored.time},p=${stored.parallelism}`
    if (hash === ASK_OLD_SYSTEM) return 'no hash: the old system is asked'
    if (hash.startsWith('$firebase-scrypt$')) return 'Firebase scrypt'
    if (hash.startsWith('$of$'))
      return `hash of what was made of the password: ${/^\$of\$([\w:,-]{1,128})\$/.exec(hash)?.[1] ?? ''}`
    return read(hash)?.format.name ?? 'no known format'
  }
}

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
