// What people, mistakes and attackers do to a system within a minute, so that every panel has something to show.
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPasswordClient, type Keyring, type PasswordClient, parseKeyring } from '@spillway/client'
import { until } from '@spillway/local/testing'
import { type ApiClient, type Credentials, respondAsync } from '@spillway/local/testing/api-client'
import { createLogger } from '@spillway/worker/log'
import { type GatewayHandle, OPERATOR, type Scene } from './scene.ts'

/** A published vector of crypt_blowfish, whose password is `U*U`. */
const BCRYPT = { password: 'U*U', storedHash: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW' }

export interface Activity {
  /** Ends it. Rejects with what went wrong in it, if anything did. */
  close(): Promise<void>
}

/** Starts it; it goes on, round after round, until it is closed. */
export function startActivity(scene: Scene, gateways: [GatewayHandle, GatewayHandle]): Activity {
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
  // It leaves early.
  await one.api.login(account, { signal: AbortSignal.timeout(2) })
  await addOddJobs(scene)
}

async function spendTicket(account: Credentials, one: ApiClient, other: ApiClient): Promise<void> {
  const { ticket } = (await one.login(account, respondAsync)).body
  await other.redeem(ticket)
  await other.redeem(ticket)
  await other.redeem(`${randomUUID()}.made-up`)
}

/** Once its successor has been used as well: until then it has a grace. */
async function reuseRefreshToken(refreshToken: unknown, api: ApiClient): Promise<void> {
  const { body } = await api.refresh(refreshToken)
  await api.refresh(body.refreshToken)
  await api.refresh(refreshToken)
}

/** A job of an older algorithm, one that comes too late, and one that was sealed with a key of somebody else's. */
async function addOddJobs(scene: Scene): Promise<void> {
  const ours = parseKeyring(scene.sealKeys)
  await withClient(scene, ours, 10_000, async (client) => void (await client.submit('verify', BCRYPT)))
  await withClient(scene, ours, 1, async (client) => void (await client.submit('verify', BCRYPT)))
  const theirs = parseKeyring(`scene:${randomBytes(32).toString('base64')}`)
  await withClient(scene, theirs, 10_000, async (client) => void (await client.submit('verify', BCRYPT)))
}

/** Kills a worker outright while it has a job, which another one must take over. */
export async function killBusyWorker(scene: Scene): Promise<void> {
  const victim = await scene.worker({ env: { SPILLWAY_TEST_HASHES: 'true' } })
  await withClient(scene, parseKeyring(scene.sealKeys), 60_000, async (client) => {
    const busy = async () => /^spillway_worker_slots_busy 1$/m.test(await metricsOf(victim.opsUrl))
    await until(async () => {
      await client.submit('verify', { password: 'any', storedHash: '$spillway-wait$10000$' })
      return await busy()
    })
  })
  await victim.close()
}

async function metricsOf(opsUrl: string): Promise<string> {
  return await (await fetch(`${opsUrl}/metrics`)).text()
}

async function withClient(
  { redisUrl, queuePrefix: prefix }: Scene,
  keyring: Keyring,
  jobLifeMs: number,
  use: (client: PasswordClient) => Promise<void>,
): Promise<void> {
  const log = createLogger({ service: 'activity', level: 'silent' })
  const client = createPasswordClient({ redisUrl, prefix, keyring, jobLifeMs, log })
  try {
    await until(() => client.isReady())
    await use(client)
  } finally {
    await client.close()
  }
}
