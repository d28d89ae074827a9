// Writes accounts in batches, each in one statement: all of a batch is there, or nothing.
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import type { Account } from './account.ts'

/** What became of an account that was not created. */
export type Left = {
  /** Its place in the batch. */
  place: number
  /** `existed`: an account of the address was there before, and stays as it is. `twice`: the batch has the address before. */
  why: 'existed' | 'twice' | 'id-taken'
  /** The id of the account of the address. */
  id: string | null
}

/** Returns those that were not created. */
export async function insertAccounts(database: Database, batch: readonly Account[]): Promise<Left[]> {
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
      RETURNING id, email
    )
    SELECT given.place::int - 1 AS place, coalesce(users.id, created.id) AS id,
      CASE WHEN users.id IS NOT NULL THEN 'existed' WHEN created.id IS NOT NULL THEN 'twice' ELSE 'id-taken' END AS why
    FROM given LEFT JOIN users USING (email) LEFT JOIN created USING (email)
    WHERE created.id IS NULL OR created.id <> given.id`
  return await rawQuery<Left>(database, sql)
}
