// PostgreSQL fails: refused meanwhile, normal again, and no connection is held for a job.
import { setTimeout as sleep } from 'node:timers/promises'
import { startProxy, type TcpProxy } from '@spillway/local/rig'
import { query } from '@spillway/local/services/query'
import { startProbe } from '../../measure/observe.ts'
import { type Findings, type Scenario, underFault } from '../scenario.ts'
import { onOwnRedis, type Stage, type System, type SystemOptions } from '../stage/stage.ts'

const AWAY_MS = 3_000
/** In each direction; a login takes three round trips and more then, and there are not connections enough for that. */
const DELAY_MS = 300

/** Resolves when it is mended. */
type Inject = (stage: Stage, proxy: TcpProxy) => Promise<void>

/** @param what the end of a sentence that starts with PostgreSQL's name */
function underPostgresFault(name: string, what: string, poolSize: number, inject: Inject): Scenario {
  return {
    name: `postgres-${name}`,
    promise: `PostgreSQL ${what}: 503 meanwhile, and all is well again.`,
    run: throughProxy(poolSize, {}, async (system, stage, proxy) => {
      const findings = await underFault(system, { perSecond: 30, fault: () => inject(stage, proxy) })
      findings.expect(findings.refused > 0, 'nothing was refused, so nothing was tried')
      return findings
    }),
  }
}

const killed = underPostgresFault('killed', 'is killed and restarted', 10, async ({ postgres }) => {
  await postgres.kill()
  await sleep(AWAY_MS)
  await postgres.start()
})

const exhausting = 'locks a table for 3 s, until every connection of the pool waits for it'
const exhausted = underPostgresFault('exhausted', exhausting, 2, async ({ postgres }) => {
  const lock = `LOCK TABLE users IN ACCESS EXCLUSIVE MODE; PERFORM pg_sleep(${AWAY_MS / 1_000});`
  await query(postgres.url, `DO $$ BEGIN ${lock} END $$`)
})

const slow = underPostgresFault('slow', 'answers 0.6 s later for 5 s', 10, async (_stage, proxy) => {
  proxy.delayMs = DELAY_MS
  await sleep(5_000)
  proxy.delayMs = 0
})

const notHeld: Scenario = {
  name: 'postgres-not-held',
  promise: 'With one connection to PostgreSQL forty logins wait for their jobs at a time: no login holds it.',
  run: throughProxy(1, { credential: 'wait-1000' }, async (system, { postgres }) => {
    const samples: number[] = []
    const sampling = startProbe(20, async () => {
      const [row] = await query(
        postgres.url,
        `SELECT count(*) AS busy FROM pg_stat_activity WHERE application_name = 'spillway' AND state <> 'idle'`,
      )
      samples.push(Number(row?.busy))
    })
    const findings = await underFault(system, { perSecond: 40, calmMs: 3_000, afterMs: 3_000 })
    await sampling.stop()
    const busyShare = samples.filter((busy) => busy > 0).length / samples.length
    findings.notes.push(`a connection was in use in ${Math.round(busyShare * 100)} % of ${samples.length} looks`)
    // Held connections would be in use all the time, and let one login a second through.
    findings.expect(busyShare < 0.5, 'connections are held while jobs are waited for')
    findings.expectAllSucceeded()
    return findings
  }),
}

/** The run of a worker and two gateways that reach PostgreSQL through a proxy. */
function throughProxy(
  poolSize: number,
  options: SystemOptions,
  run: (system: System, stage: Stage, proxy: TcpProxy) => Promise<Findings>,
): Scenario['run'] {
  return async (stage) => {
    const proxy = await startProxy(stage.postgres.url)
    const size = {
      ...options,
      workers: 1,
      databaseUrl: proxy.url,
      gatewayEnv: { DATABASE_POOL_SIZE: String(poolSize) },
      workerEnv: { WORKER_CONCURRENCY: '64' },
    }
    try {
      return await onOwnRedis(size, (system) => run(system, stage, proxy))(stage)
    } finally {
      await proxy.close()
    }
  }
}

export const postgresScenarios: readonly Scenario[] = [killed, exhausted, slow, notHeld]
