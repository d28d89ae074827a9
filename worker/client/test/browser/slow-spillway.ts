// A gateway and a worker whose hashes take as long as a test says, and no processor time.
import { randomUUID } from 'node:crypto'
import type { Ending } from '@spillway/infra/rig/namespace'
import { createNamespace } from '@spillway/infra/rig/namespace'
import { openSpillway } from '@spillway/infra/rig/spillway'
import { query } from '@spillway/infra/services/query'

/** One worker of one slot. Any password but "wrong" is right. */
export async function startSlowSpillway(t: Ending, { workers = 1, env }: { workers?: number; env: object }) {
  const namespace = await createNamespace()
  t.onTestFinished(() => namespace.close())
  const spillway = openSpillway({
    ...namespace,
    env: { SPILLWAY_TEST_HASHES: 'true', ARGON2_MEMORY_KIB: '4096', ARGON2_TIME: '1' },
    gatewayEnv: { ...env },
    workerEnv: { WORKER_CONCURRENCY: '1', HASH_ENGINE: 'packages' },
  })
  t.onTestFinished(async () => void (await spillway.close()))
  for (let worker = 0; worker < workers; worker++) await spillway.worker()
  const gateway = await spillway.gateway()
  await spillway.knowsWorkers()
  return {
    spillway,
    gateway,
    async account(serviceMs: number, password = 'correct horse') {
      const email = `${randomUUID()}@example.test`
      const values = [randomUUID(), email, `$spillway-wait$${serviceMs}$`]
      const insert = 'INSERT INTO users (id, email, password_hash, updated_at) VALUES ($1, $2, $3, now())'
      await query(namespace.databaseUrl, insert, values)
      return { email, password }
    },
    /** The passwords that the gateway was sent, and those that it had to be: one a login, and one for each refusal and each ticket that expired or was lost. */
    async passwords(logins: number): Promise<{ sent: number; needed: number; refused: number; ticketed: number }> {
      const page = await (await fetch(`${gateway.opsUrl}/metrics`)).text()
      const count = (route: string, outcome = '') =>
        [...page.matchAll(/^spillway_http_requests_total\{(.*)\} (\d+)$/gm)]
          .filter(([, labels]) => labels?.includes(`route="${route}"`) && labels.includes(`outcome="${outcome}`))
          .reduce((sum, [, , value]) => sum + Number(value), 0)
      const refused = count('/v1/login', 'busy')
      const gone = count('/v1/tickets/redeem', 'ticket_expired') + count('/v1/tickets/redeem', 'ticket_lost')
      const needed = logins + refused + gone
      return { sent: count('/v1/login'), needed, refused, ticketed: count('/v1/login', 'ticket') }
    },
    /** Of an account. */
    async sessions(email: string): Promise<number> {
      const count = 'SELECT count(*) FROM sessions JOIN users ON users.id = user_id WHERE email = $1'
      const [row] = await query(namespace.databaseUrl, count, [email])
      return Number(row?.count)
    },
  }
}

/**
 * Ten times what is hashed, five logins a second. A ticket is given after a second, and a login refused that has twenty before it: those
 * that come once there are tickets.
 */
export const SPIKE = {
  serviceMs: 200,
  /** How many come at once, and how many soon after. */
  first: 48,
  later: 12,
  /** A client that never gets in fails the test. */
  giveUpAfterMs: 120_000,
  env: { LOGIN_WAIT_MS: '1000', TICKET_TTL_MS: '30000', MAX_OUTSTANDING: '20' },
}
