// Logins, mistakes and attacks of all kinds, so that every panel has data.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { newSealKey, until } from '@spillway/local/rig'
import { type ApiClient, type Credentials, readMetric, respondAsync } from '@spillway/local/rig/api-client'
import { type GatewayHandle, OPERATOR, openClient, type Scene } from './scene.ts'

/** A published vector of crypt_blowfish, whose password is `U*U`. */
const BCRYPT = { password: 'U*U', storedHash: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW' }

/** Repeats the activity until it is closed. */
export function startActivity(scene: Scene, gateways: [GatewayHandle, GatewayHandle]) {
  const stopped = new AbortController()
  const running = (async () => {
    while (!stopped.signal.aborted) {
      await round(scene, gateways)
      await sleep(200)
    }
  })()
  // Reported by close().
  running.catch(() => undefined)
  return {
    /** Ends it. Rejects with the first error of the activity, if there was one. */
    async close() {
      stopped.abort()
      await running
    },
  }
}

async function round(scene: Scene, [one, other]: [GatewayHandle, GatewayHandle]): Promise<void> {
  const account = { email: `${randomUUID()}@example.test`, password: 'a passphrase' }
  await one.api.register(account)
  const logins = Array.from({ length: 8 }, () => one.api.login(account))
  const wrong = one.api.login({ ...account, password: 'another passphrase' })
  await Promise.all([...logins, wrong, other.api.login({ ...account, email: 'nobody@example.test' })])
  await spendTicket(account, one.api, other.api)
  await reuseRefreshToken((await one.api.login(account)).body.refreshToken, other.api)
  await fetch(one.opsUrl, { headers: { authorization: `Basic ${btoa(`${OPERATOR.user}:a guess`)}` } })
  // A client that leaves early.
  await one.api.login(account, { signal: AbortSignal.timeout(2) })
  await addOddJobs(scene)
}

async function spendTicket(account: Credentials, one: ApiClient, other: ApiClient): Promise<void> {
  const { ticket } = (await one.login(account, respondAsync)).body
  await other.redeem(ticket)
  await other.redeem(ticket)
  await other.redeem(`${randomUUID()}.made-up`)
}

/** Reuse is detected only once the successor has been used: until then there is a grace period. */
async function reuseRefreshToken(refreshToken: unknown, api: ApiClient): Promise<void> {
  const { body } = await api.refresh(refreshToken)
  await api.refresh(body.refreshToken)
  await api.refresh(refreshToken)
}

/** A job of an older algorithm, one that comes too late, and one that was sealed with a foreign key. */
async function addOddJobs(scene: Scene): Promise<void> {
  for (const options of [{}, { jobLifeMs: 1 }, { sealKeys: newSealKey() }]) {
    const client = await openClient(scene, options)
    await client.submit('verify', BCRYPT).finally(() => client.close())
  }
}

/** Kills a worker while it has a job, which another one must take over. */
export async function killBusyWorker(scene: Scene): Promise<void> {
  const victim = await scene.worker({ env: { SPILLWAY_TEST_HASHES: 'true' } })
  const client = await openClient(scene)
  await until(async () => {
    await client.submit('verify', { password: 'any', storedHash: '$spillway-wait$10000$' })
    return (await readMetric(victim.opsUrl, 'spillway_worker_slots_busy')) === 1
  }).finally(() => client.close())
  await victim.close()
}
