// Accounts whose stored hash a test chooses, and what accounts are called in Redis.
import { randomUUID } from 'node:crypto'
import { closedGate, type Ending } from '@spillway/infra/harness/namespace'
import type { Database } from '@spillway/prisma'
import { parseKeyring } from '@spillway/queue/client'
import { accountNameOf, accountNamesOf, accountOfEmail } from '../src/limits/limits.ts'
import { type Credentials, newCredentials } from './client.ts'
import type { System } from './system.ts'

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

/** A new account whose verification takes so long, without processor time (doubles.mjs) */
export function slowAccount(database: Database, serviceMs: number): Promise<Credentials> {
  return accountWithHash(database, `$spillway-wait$${serviceMs}$`)
}

/** A new account, verified when its gate is opened or the test ends (doubles.mjs) */
export async function gatedAccount(t: Ending, database: Database): Promise<{ account: Credentials; open(): void }> {
  const { storedHash, open } = await closedGate(t)
  return { account: await accountWithHash(database, storedHash), open }
}

/** The name by which gateways of a system count an account. */
export function nameInRedis({ environment }: Pick<System, 'environment'>, email: string): string {
  return accountNameOf(accountOfEmail(email), parseKeyring(environment.SPILLWAY_SEAL_KEYS ?? ''))
}

/** Has strangers failed so often on an account that they have to wait for an hour. */
export async function delayStrangers(
  { environment, redis, namespace }: Pick<System, 'environment' | 'redis'> & { namespace: { queuePrefix: string } },
  email: string,
): Promise<void> {
  const names = accountNamesOf(accountOfEmail(email), parseKeyring(environment.SPILLWAY_SEAL_KEYS ?? ''))
  for (const name of names)
    await redis.hset(`${namespace.queuePrefix}:guesses:${name}`, { failures: 40, failedAt: Date.now() })
}
