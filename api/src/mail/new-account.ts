/** Creates accounts without revealing whether an address already has one. */
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { expiryIn, mailTokenDigest } from './tokens.js'

export interface NewAccount {
  /** Of the job that hashed the password. */
  id: string
  email: string
  passwordHash: string
  createdAt: Date
  /** Confirms the address. */
  token: string
  /** How long the token is good, in milliseconds. */
  tokenLifeMs: number
}

/**
 * Creates an account, unless its address is taken. The token is stored in either case, under the id of the job: so a job counts once in
 * either case, `used` from then on, and the database does the same work.
 */
export async function createOrKeep(database: Database, account: NewAccount): Promise<'created' | 'taken' | 'used'> {
  const { id, email, passwordHash, createdAt, token, tokenLifeMs } = account
  // ON CONFLICT, because PostgreSQL logs a violated constraint together with the address.
  const [outcome] = await rawQuery<{ isFirst: boolean; isNew: boolean }>(
    database,
    Prisma.sql`
      WITH created AS (
        INSERT INTO users (id, email, password_hash, created_at, updated_at)
        VALUES (${id}::uuid, ${email}, ${passwordHash}, ${createdAt}::timestamptz, ${createdAt}::timestamptz)
        ON CONFLICT DO NOTHING RETURNING id, email
      ), token AS (
        INSERT INTO mail_tokens (id, token_hash, purpose, user_id, email, credential_version, expires_at)
        SELECT ${id}::uuid, ${mailTokenDigest(token)}::bytea, 'confirm', created.id, coalesce(created.email, ''), 1,
          ${expiryIn(tokenLifeMs)}
        FROM (SELECT) AS one LEFT JOIN created ON true
        ON CONFLICT DO NOTHING RETURNING id
      )
      SELECT EXISTS (SELECT FROM token) AS "isFirst", EXISTS (SELECT FROM created) AS "isNew"`,
  )
  if (!outcome?.isFirst) return 'used'
  return outcome.isNew ? 'created' : 'taken'
}
