// How many accounts have hashes of which algorithm and cost.
import { type Database, Prisma } from '@spillway/prisma'
import { pagesOfAccounts } from './pages.ts'

const BATCH = 20_000

/** By what a hash begins with, up to its cost; the most first. */
export async function countHashes(database: Database): Promise<[hashes: string, accounts: number][]> {
  const counts = new Map<string, number>()
  const heads = Prisma.sql`substr(password_hash, 1, 64) AS head`
  for await (const rows of pagesOfAccounts<{ id: string; head: string }>(database, heads, BATCH)) {
    for (const { head } of rows) {
      const kind = kindOf(head)
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
    }
  }
  return [...counts].sort(([, a], [, b]) => b - a)
}

/** `argon2id, m=19456,t=2,p=1`, `bcrypt, cost 12`; else the name of the format alone. */
export function kindOf(hash: string): string {
  const [, argon2, cost] = /^(?:argon2)?\$(argon2id?|argon2d)\$v=\d+\$(m=\d+,t=\d+,p=\d+)\$/.exec(hash) ?? []
  if (argon2 !== undefined) return `${argon2}, ${cost}`
  const [, rounds] = /^\$2[abxy]\$(\d\d)\$/.exec(hash) ?? []
  if (rounds !== undefined) return `bcrypt, cost ${Number(rounds)}`
  return /^[$]?([A-Za-z0-9_-]{1,24})[$:]/.exec(hash)?.[1] ?? /^\{([A-Z0-9]{1,12})\}/.exec(hash)?.[1] ?? 'other'
}
