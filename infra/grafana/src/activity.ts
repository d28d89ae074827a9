// What people, mistakes and attackers do to a system within a minute, so that every panel has something to show.
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPasswordClient, type Keyring, type PasswordClient, parseKeyring } from '@spillway/client'
import { until } from '@spillway/local/testing'
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
  const email = `${randomUUID()}@example.test`
  const password = 'a passphrase'
  await one.register(email, password)
  const logins = Array.from({ length: 8 }, () => one.login(email, password))
  await Promise.all([...logins, one.login(email, 'another passphrase'), other.login('nobody@example.test', password)])
  await spendTicket(email, password, one, other)
  await reuseRefreshToken(await one.login(email, password).then(({ body }) => String(body.refreshToken)), other)
  await fetch(one.opsUrl, { headers: { authorization: `Basic ${btoa(`${OPERATOR.user}:a guess`)}` } })
  await leaveEarly(email, password, one)
  await addOddJobs(scene)
}

async function spendTicket(email: string, password: string, one: GatewayHandle, other: GatewayHandle): Promise<void> {
  const { body } = await one.login(email, password, { prefer: 'respond-async' })
  const redeem = (ticket: unknown) => other.post('/v1/tickets/redeem', { ticket })
  await redeem(body.ticket)
  await redeem(body.ticket)
  await redeem(`${randomUUID()}.made-up`)
}

/** Once its successor has been used as well: until then it has a grace. */
async function reuseRefreshToken(refreshToken: string, gateway: GatewayHandle): Promise<void> {
  const refresh = (token: unknown) => gateway.post('/v1/token/refresh', { refreshToken: token })
  const { body } = await refresh(refreshToken)
  await refresh(body.refreshToken)
  await refresh(refreshToken)
}

async function leaveEarly(email: string, password: string, gateway: GatewayHandle): Promise<void> {
  await gateway.login(email, password, { signal: AbortSignal.timeout(2) }).catch(() => undefined)
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
