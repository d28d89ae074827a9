/** Accounts that the old system vouches for: made, or given the hash that they came without, at their first login. */
import { newId } from '@spillway/client/protocol/id'
import { ASK_OLD_SYSTEM } from '@spillway/client/protocol/stored-hash'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'

export interface VouchedFor {
  email: string
  /** Of the password that the old system verified. */
  passwordHash: string
}

type CompletedAccount = { userId: string; credentialVersion: number }

/**
 * Makes the account of an address that was unknown when the password was verified. Undefined where one was made meanwhile: it may be
 * anybody's.
 */
export async function createVouchedFor(
  database: Database,
  { email, passwordHash }: VouchedFor,
): Promise<CompletedAccount | undefined> {
  const sql = Prisma.sql`
    INSERT INTO users (id, email, password_hash, updated_at) VALUES (${newId()}::uuid, ${email}, ${passwordHash}, now())
    ON CONFLICT DO NOTHING RETURNING id AS "userId", credential_version AS "credentialVersion"`
  const [created] = await rawQuery<CompletedAccount>(database, sql)
  return created
}

/** Gives an account the hash that it came without. One that has a hash by now keeps it. */
export async function completeAccount(database: Database, userId: string, passwordHash: string): Promise<void> {
  await rawQuery(
    database,
    Prisma.sql`
      UPDATE users SET password_hash = ${passwordHash}, updated_at = now()
      WHERE id = ${userId}::uuid AND password_hash = ${ASK_OLD_SYSTEM}`,
  )
}
