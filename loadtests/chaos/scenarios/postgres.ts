// PostgreSQL fails: refused meanwhile, normal again, and no connection is held for a job.
import { setTimeout as sleep } from 'node:timers/promises'
import { startProxy, type TcpProxy } from '@spillway/infra/rig/tcp-proxy'
import { query } from '@spillway/infra/services/query'
import { arrivals, Visitor } from '../../load/visit.ts'
import { Probe } from '../../measure/probe.ts'
import { Findings } from '../findings.ts'
import { type Scenario, underFault } from '../scenario.ts'
import { onRedis, onSharedRedis, type Stage } from '../stage/stage.ts'

const AWAY_MS = 3_000
/** In each direction. A login takes three round trips and more: too long for the connections. */
const DELAY_MS = 300

type Inject = (stage: Stage, proxy: TcpProxy) => Promise<void>

/** A worker and two gateways that reach PostgreSQL through a proxy. */
const size = (poolSize: number) => ({
  workers: 1,
  gatewayEnv: { DATABASE_POOL_SIZE: String(poolSize) },
  workerEnv: { WORKER_CONCURRENCY: '64' },
})

async function startBehindProxy(stage: Stage) {
  const [redis, proxy] = await Promise.all([stage.redis(), startProxy(stage.postgres.url)])
  const close = async () => {
    await redis.close()
    await proxy.close()
  }
  return { url: redis.url, databaseUrl: proxy.url, proxy, close }
}

const runOnFew = onSharedRedis(startBehindProxy, size(2))

/** @param what the end of a sentence that starts with PostgreSQL's name */
function underPostgresFault(name: string, what: string, inject: Inject): Scenario {
  return {
    name: `postgres-${name}`,
    promise: `PostgreSQL ${what}: 503 meanwhile, and all is well again.`,
    family: 'postgres',
    run: runOnFew(async (system, { proxy }, stage) => {
      const findings = await underFault(system, { perSecond: 30, fault: () => inject(stage, proxy) })
      findings.expectRefusals()
      return findings
    }),
  }
}

const killed = underPostgresFault('killed', 'is killed and restarted', async ({ postgres }) => {
  await postgres.kill()
  await sleep(AWAY_MS)
  await postgres.start()
})

const exhausting = 'locks a table for 3 s, until every connection of the pool waits for it'
const exhausted = underPostgresFault('exhausted', exhausting, async ({ postgres }) => {
  const lock = `LOCK TABLE users IN ACCESS EXCLUSIVE MODE; PERFORM pg_sleep(${AWAY_MS / 1_000});`
  await query(postgres.url, `DO $$ BEGIN ${lock} END $$`)
})

const slow = underPostgresFault('slow', 'answers 0.6 s later for 5 s', async (_stage, proxy) => {
  proxy.delayMs = DELAY_MS
  await sleep(5_000)
  proxy.delayMs = 0
})

const notHeld: Scenario = {
  name: 'postgres-not-held',
  promise: 'With one connection to PostgreSQL forty logins wait for their jobs at a time: no login holds it.',
  run: onRedis(startBehindProxy, { ...size(1), credential: 'wait-2000' }, async (system, _redis, { postgres }) => {
    const samples: number[] = []
    const sql = `SELECT count(*) AS busy FROM pg_stat_activity WHERE application_name = 'spillway' AND state <> 'idle'`
    const sample = async () => samples.push(Number((await query(postgres.url, sql))[0]?.busy))
    const sampling = new Probe({ perSecond: 20, ask: sample }).start()
    const findings = await underFault(system, { perSecond: 20, calmMs: 4_000, afterMs: 3_000 })
    await sampling.stop()
    const busyShare = samples.filter((busy) => busy > 0).length / samples.length
    findings.notes.push(`a connection was in use in ${Math.round(busyShare * 100)} % of ${samples.length} looks`)
    // Held connections would be in use all the time, and let one login through in two seconds.
    findings.expect(busyShare < 0.5, 'connections are held while jobs are waited for')
    findings.expectAllSucceeded()
    return findings
  }),
}

/** A worker does forty a second: the line is ten seconds long. */
const PEOPLE = { perSecond: 100, seconds: 4 }
const GOES_AFTER_MS = 3_000
const fullLine = {
  ...size(10),
  credential: 'wait-100',
  gateways: 1,
  workerEnv: { WORKER_CONCURRENCY: '4' },
} as const

const inFullLine: Scenario = {
  name: 'postgres-line',
  promise: 'PostgreSQL is away for 3 s in a full line: all get in, and no hash is made twice.',
  run: onRedis(startBehindProxy, fullLine, async (system, _redis, { postgres }) => {
    const before = await system.jobs()
    const people = new Visitor({ ...system.visitor(), everyNthWrong: 0, tries: Number.POSITIVE_INFINITY })
    const coming = arrivals({ ...PEOPLE, visit: (n, dueMs) => people.visit(n, dueMs) })
    await sleep(GOES_AFTER_MS)
    await postgres.kill()
    await sleep(AWAY_MS)
    await postgres.start()
    const visits = await coming
    people.close()
    const findings = new Findings().count(visits)
    const twice = (await system.jobs()) - before - findings.succeeded
    const met = visits.filter(({ failures }) => failures > 0).length
    findings.notes.push(`${visits.length} people, ${met} met a failure meanwhile, ${twice} hashes made twice`)
    findings.expect(met > 0, 'nobody noticed that PostgreSQL was away, so nothing was tried')
    findings.expect(twice === 0, `${twice} hashes were made twice`)
    findings.expectAllSucceeded()
    return findings
  }),
}

export const postgresScenarios: readonly Scenario[] = [inFullLine, killed, exhausted, slow, notHeld]
