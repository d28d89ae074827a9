import pg from 'pg'

export function withDatabase(url: string, database: string): string {
  const changed = new URL(url)
  changed.pathname = `/${database}`
  return changed.href
}

/** Runs one statement on a connection of its own. */
export async function query(url: string, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 60_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query(text, values)).rows
  } finally {
    await client.end()
  }
}

export function databaseOf(url: string): string {
  return decodeURIComponent(new URL(url).pathname.slice(1))
}

/** What `pnpm seed` makes, unless it is told otherwise: accounts with the name `user`. */
export const seeded = { name: 'user', count: 10_000, password: 'spillway seed password' } as const

/** The address of the n-th account of a name, from 1. */
export function emailOf(name: string, n: number): string {
  return `${name}-${n}@example.test`
}

/** Makes sure that so many accounts of a name exist and have this hash. Returns how many are new. */
export async function createAccounts(
  databaseUrl: string,
  name: string,
  count: number,
  passwordHash: string,
): Promise<number> {
  // xmax is 0 in a row that is new.
  const [counted] = await query(
    databaseUrl,
    `WITH made AS (
       INSERT INTO users (id, email, password_hash, updated_at)
       SELECT gen_random_uuid(), $1 || '-' || n || '@example.test', $2, now() FROM generate_series(1, $3::int) AS n
       ON CONFLICT (email) DO UPDATE SET password_hash = excluded.password_hash, updated_at = now()
       RETURNING xmax = 0 AS is_new
     )
     SELECT count(*) FILTER (WHERE is_new)::int AS new FROM made`,
    [name, passwordHash, count],
  )
  return Number(counted?.new)
}
