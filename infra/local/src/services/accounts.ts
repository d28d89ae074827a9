// Accounts for tests and measurements, which need no password to be hashed for them.
import { query } from './query.ts'

/** Creates accounts with this stored hash, and returns their addresses. */
export async function createAccounts(
  databaseUrl: string,
  name: string,
  count: number,
  passwordHash: string,
): Promise<string[]> {
  const rows = await query(
    databaseUrl,
    `INSERT INTO users (id, email, password_hash, updated_at)
     SELECT gen_random_uuid(), $1 || '-' || n || '@example.com', $2, now() FROM generate_series(1, $3::int) AS n
     RETURNING email`,
    [name, passwordHash, count],
  )
  return rows.map(({ email }) => String(email))
}
