// Writes accounts in batches, each in one statement: all of a batch is there, or nothing.
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import type { Account } from './account.ts'

export interface Inserted {
  created: number
  /** Accounts whose address was there before: they are left as they are. */
  existing: number
  /** Places in the batch of accounts whose id belongs to another address. */
  conflicting: number[]
}

export async function insertAccounts(database: Database, batch: readonly Account[]): Promise<Inserted> {
  const column = <T>(of: (account: Account) => T) => batch.map(of)
  // The addresses that exist are read after the insert by the same snapshot, so without those that it creates.
  const sql = Prisma.sql`
    WITH given AS (
      SELECT * FROM unnest(
        ${column(({ id }) => id)}::uuid[],
        ${column(({ email }) => email)}::text[],
        ${column(({ passwordHash }) => passwordHash)}::text[],
        ${column(({ createdAt }) => createdAt.toISOString())}::timestamptz[],
        ${column(({ emailConfirmedAt }) => emailConfirmedAt?.toISOString() ?? null)}::timestamptz[]
      ) WITH ORDINALITY AS account (id, email, password_hash, created_at, email_confirmed_at, place)
    ), created AS (
      INSERT INTO users (id, email, password_hash, created_at, email_confirmed_at, updated_at)
      SELECT id, email, password_hash, created_at, email_confirmed_at, now() FROM given ORDER BY place
      ON CONFLICT DO NOTHING
      RETURNING email
    )
    SELECT given.place::int - 1 AS place, users.email IS NOT NULL AS existed
    FROM given LEFT JOIN users USING (email)
    WHERE users.email IS NOT NULL OR NOT EXISTS (SELECT FROM created WHERE created.email = given.email)`
  const left = await rawQuery<{ place: number; existed: boolean }>(database, sql)
  const conflicting = left.filter(({ existed }) => !existed).map(({ place }) => place)
  // An address twice in one batch is created once: the second has neither been there before nor is it left over.
  const created = new Set(batch.filter((_, n) => !left.some(({ place }) => place === n)).map(({ email }) => email)).size
  return { created, existing: batch.length - created - conflicting.length, conflicting }
}
