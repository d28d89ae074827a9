// Accounts in bulk, for trying things at size.
import type { Database } from './index.js'

/** The password of seeded accounts, unless `pnpm seed` was given another one. */
export const SEED_PASSWORD = 'spillway seed password'
/** How many accounts `pnpm seed` makes, unless told otherwise. */
export const SEED_USERS = 10_000

/** The address of the n-th seeded account, from 1. */
export function seedEmail(n: number): string {
  return `user-${n}@example.test`
}

export interface SeedOptions {
  /** How many accounts: `user-1@example.test` and up. */
  users: number
  /** The one hash that all of them get; a hash each would take minutes. */
  passwordHash: string
}

export interface SeedResult {
  created: number
  /** Accounts that were there before. They have the password now, too. */
  existing: number
}

/** Inserts the accounts, or gives those that exist the hash; the same call a second time changes nothing. */
export async function seedUsers(database: Database, { users, passwordHash }: SeedOptions): Promise<SeedResult> {
  let created = 0
  for (let first = 1; first <= users; first += batchSize) {
    const last = Math.min(first + batchSize - 1, users)
    created += await seedBatch(database, first, last, passwordHash)
  }
  return { created, existing: users - created }
}

/** Rows a statement: few enough to end well before the statement timeout. */
const batchSize = 10_000

async function seedBatch(database: Database, first: number, last: number, passwordHash: string): Promise<number> {
  // PostgreSQL itself makes up the rows, so only numbers and one hash cross the wire. xmax is 0 in a row just inserted.
  const [counted] = await database.$queryRaw<{ created: number }[]>`
    WITH seeded AS (
      INSERT INTO users (id, email, password_hash, updated_at)
      SELECT gen_random_uuid(), 'user-' || n || '@example.test', ${passwordHash}, now()
      FROM generate_series(${first}::int, ${last}::int) AS n
      ON CONFLICT (email) DO UPDATE SET
        password_hash = excluded.password_hash,
        credential_version = users.credential_version + 1,
        updated_at = now()
      WHERE users.password_hash <> excluded.password_hash
      RETURNING xmax = 0 AS created
    )
    SELECT count(*) FILTER (WHERE created)::int AS created FROM seeded`
  return counted?.created ?? 0
}
