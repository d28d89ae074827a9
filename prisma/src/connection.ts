// What every connection to PostgreSQL has in common, whether the gateway's client or the migrator opens it.

/**
 * Checks a PostgreSQL URL and adds what Spillway relies on: the session's time zone is UTC. The driver writes and reads
 * times without their offset, so in any other zone `now()` in SQL and a `Date` from Node would disagree.
 *
 * @throws one sentence, without the URL (it carries the password), when it is not a PostgreSQL URL or names a schema
 */
export function connectionString(databaseUrl: string): string {
  if (!URL.canParse(databaseUrl)) throw new Error(`The database URL cannot be read; write it as ${form}.`)
  const url = new URL(databaseUrl)
  if (url.protocol !== 'postgresql:' && url.protocol !== 'postgres:') {
    throw new Error(`The database URL starts with ${url.protocol}//; only PostgreSQL is supported: ${form}.`)
  }
  // Prisma's own parameter, which the driver would ignore without a word.
  const schema = url.searchParams.get('schema')
  if (schema !== null && schema !== 'public') {
    throw new Error(`The database URL names the schema "${schema}"; give Spillway a database of its own instead.`)
  }
  url.searchParams.delete('schema')
  const options = url.searchParams.get('options')
  url.searchParams.set('options', [options, '-c timezone=UTC'].filter(Boolean).join(' '))
  return url.href
}

const form = 'postgresql://user:password@host:5432/database'
