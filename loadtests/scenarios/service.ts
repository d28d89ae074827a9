// The service API beside the Node client of an application: a verify without a hash by each, in turn, when nobody else asks.
import { randomBytes } from 'node:crypto'
import { createPasswords, type Passwords } from '@spillway/client'
import { openSpillway } from '@spillway/infra/rig'
import { createApiClient } from '@spillway/infra/rig/api-client'
import { deleteKeys } from '@spillway/infra/rig/namespace'
import { TOKEN_HASH } from '../contenders/hashing.ts'
import { Latency } from '../measure/tally.ts'
import type { Measured } from '../src/results.ts'
import type { Scenario, Setting } from './scenario.ts'

const REQUEST = { password: 'correct horse', storedHash: TOKEN_HASH }
/** Before the first is measured, so that code is compiled. */
const WARM_UP = 300

type Verify = () => Promise<unknown>

export const service: Scenario = {
  name: 'service',
  title: 'The service API',
  question: 'What does a verify by HTTP take over one by the Node client, when nothing else happens?',
  durationS: 2,
  settings: () => ({}),
  plan: (setting) =>
    setting.contenders.some(({ name }) => name === 'spillway')
      ? [{ contender: 'spillway', variant: 'token', placement: 'apart', measure: () => measureBoth(setting) }]
      : [],
}

async function measureBoth({ services, cores, durationS }: Setting): Promise<Partial<Measured>> {
  const key = randomBytes(32).toString('base64')
  const spillway = openSpillway({
    databaseUrl: services.databaseUrl,
    redisUrl: services.redisUrl,
    gatewayEnv: { SERVICE_KEYS: `load:${key}`, SERVICE_PORT: '0' },
    workerEnv: { WORKER_CONCURRENCY: '1', SPILLWAY_TEST_HASHES: 'true' },
    keepOnly: 'nothing',
  })
  const { redisUrl: redis, queuePrefix, sealKeys } = spillway
  const passwords = createPasswords({ redis, queuePrefix, sealKeys })
  try {
    const [{ serviceUrl = '' }] = await Promise.all([spillway.gateway({ cores }), spillway.worker({ cores })])
    await spillway.knowsWorkers()
    return await inTurn(byHttp(serviceUrl, key), byClient(passwords), durationS)
  } finally {
    await passwords.close()
    await spillway.close()
    await deleteKeys(services.redisUrl, queuePrefix)
  }
}

function byHttp(serviceUrl: string, key: string): Verify {
  const client = createApiClient(serviceUrl)
  const headers = { authorization: `Bearer ${key}` }
  return async () => {
    const { status } = await client.post('/v1/passwords/verify', REQUEST, { headers })
    if (status !== 200) throw new Error(`a verify on an idle service API ended with status ${status}`)
  }
}

const byClient =
  (passwords: Passwords): Verify =>
  () =>
    passwords.verify(REQUEST.password, REQUEST.storedHash)

async function inTurn(http: Verify, client: Verify, durationS: number): Promise<Partial<Measured>> {
  const latencies = { http: new Latency(), client: new Latency() }
  for (let n = 0; n < WARM_UP; n++) {
    await http()
    await client()
  }
  for (const endMs = performance.now() + durationS * 1_000; performance.now() < endMs; ) {
    latencies.http.record(await timed(http))
    latencies.client.record(await timed(client))
  }
  const [p50Ms, clientP50Ms] = [latencies.http.percentiles.p50Ms, latencies.client.percentiles.p50Ms]
  return {
    figures: { p50Ms, clientP50Ms, overheadMs: p50Ms - clientP50Ms },
  }
}

async function timed(verify: Verify): Promise<number> {
  const startMs = performance.now()
  await verify()
  return performance.now() - startMs
}
