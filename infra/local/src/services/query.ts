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
