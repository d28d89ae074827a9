// Creates accounts in bulk, for load tests and trials.
import type { Database } from './index.js'

export const SEED_PASSWORD = 'spillway seed password'
export const SEED_USERS = 10_000

/** The address of the n-th seeded account, from 1. */
export function seedEmail(n: number): string {
  return `user-${n}@example.test`
}

/** Rows of each statement, few enough for the statement timeout. */
const BATCH = 10_000

/**
 * Inserts accounts from `user-1@example.test` on, and updates the hash of existing accounts. All
 * have the same hash, because a hash for each would take minutes. It can be run again.
 */
export async function seedUsers(
  database: Database,
  { users, passwordHash }: { users: number; passwordHash: string },
): Promise<{ created: number; existing: number }> {
  let created = 0
  for (let first = 1; first <= users; first += BATCH) {
    const last = Math.min(first + BATCH - 1, users)
    // xmax is 0 in a newly inserted row.
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
    created += counted?.created ?? 0
  }
  return { created, existing: users - created }
}
