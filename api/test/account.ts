// Accounts whose stored hash a test chooses.
import { randomUUID } from 'node:crypto'
import type { Database } from '@spillway/prisma'
import { type Credentials, newCredentials } from './client.ts'

/** A new account with this stored hash. */
export async function accountWithHash(
  database: Database,
  passwordHash: string,
  password = newCredentials().password,
): Promise<Credentials> {
  const { email } = newCredentials()
  await database.user.create({ data: { id: randomUUID(), email, passwordHash } })
  return { email, password }
}

/** A new account whose verification takes this long, and no processor time. For workers with SPILLWAY_TEST_HASHES. */
export function slowAccount(database: Database, serviceMs: number): Promise<Credentials> {
  return accountWithHash(database, `$spillway-wait$${serviceMs}$`)
}
