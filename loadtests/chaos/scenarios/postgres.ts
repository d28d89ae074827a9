// PostgreSQL fails: refused meanwhile, normal again within 5 s, and no connection is held for a job.
import { setTimeout as sleep } from 'node:timers/promises'
import { query } from '@spillway/local/services/query'
import { startProxy, type TcpProxy } from '@spillway/local/testing'
import { expect, type Findings } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import type { Stage } from '../stage/stage.ts'
import { openSystem } from '../stage/system.ts'
import { startProbe } from '../traffic/probe.ts'
import { underFault } from '../under-fault.ts'

const CREDENTIAL = 'wait-20'
const PER_SECOND = 50
const AWAY_MS = 3_000
/** In each direction; a login takes three round trips and more then, and there are not connections enough for that. */
const DELAY_MS = 300
/** The longest that a query may take, and that one may wait for a connection, and some. */
const ANSWER_LIMIT_MS = 9_000

interface PostgresFault {
  name: string
  /** What happens, as part of a sentence that starts with PostgreSQL's name. */
  what: string
  poolSize: number
  befall(stage: Stage, proxy: TcpProxy): Promise<void>
}

const faults: readonly PostgresFault[] = [
  {
    name: 'killed',
    what: 'is killed and restarted',
    poolSize: 10,
    async befall({ postgres }) {
      await postgres.kill()
      await sleep(AWAY_MS)
      await postgres.start()
    },
  },
  {
    name: 'exhausted',
    what: 'locks a table for 3 s, until every connection of the pool waits for it',
    poolSize: 2,
    async befall({ postgres }) {
      const seconds = AWAY_MS / 1_000
      await query(
        postgres.url,
        `DO $$ BEGIN LOCK TABLE users IN ACCESS EXCLUSIVE MODE; PERFORM pg_sleep(${seconds}); END $$`,
      )
    },
  },
  {
    name: 'slow',
    what: 'answers 0.6 s later for 5 s',
    poolSize: 10,
    async befall(_stage, proxy) {
      proxy.delayMs = DELAY_MS
      await sleep(5_000)
      proxy.delayMs = 0
    },
  },
]

const underFaults = faults.map(
  ({ name, what, poolSize, befall }): Scenario => ({
    name: `postgres-${name}`,
    promise: `PostgreSQL ${what}: 503 meanwhile, and all is well again within 5 s.`,
    estimatedS: 17,
    run: (stage) =>
      onPostgres(stage, { poolSize }, async ({ system, proxy }) => {
        const findings = await underFault({
          system,
          visitor: { urls: system.gateways.map(({ url }) => url), accounts: stage.accounts, credential: CREDENTIAL },
          perSecond: PER_SECOND,
          fault: () => befall(stage, proxy),
          answerLimitMs: ANSWER_LIMIT_MS,
        })
        expect(findings, findings.refused > 0, 'nothing was refused, so nothing was tried')
        return findings
      }),
  }),
)

const HELD_CREDENTIAL = 'wait-1000'
const HELD_PER_SECOND = 40

const notHeld: Scenario = {
  name: 'postgres-not-held',
  promise: 'With one connection to PostgreSQL forty logins wait for their jobs at a time: none of them holds it.',
  estimatedS: 9,
  run: (stage) =>
    onPostgres(stage, { poolSize: 1, credential: HELD_CREDENTIAL }, async ({ system }) => {
      const samples: number[] = []
      const sampling = startProbe(async () => {
        const [row] = await query(
          stage.postgres.url,
          `SELECT count(*) AS busy FROM pg_stat_activity WHERE application_name = 'spillway' AND state <> 'idle'`,
        )
        samples.push(Number(row?.busy))
        return true
      }, 50)
      const findings = await underFault({
        system,
        visitor: {
          urls: system.gateways.map(({ url }) => url),
          accounts: stage.accounts,
          credential: HELD_CREDENTIAL,
        },
        perSecond: HELD_PER_SECOND,
        fault: async () => undefined,
        calmMs: 3_000,
        afterMs: 3_000,
        answerLimitMs: ANSWER_LIMIT_MS,
      })
      await sampling.stop()
      const busyShare = samples.filter((busy) => busy > 0).length / samples.length
      findings.notes.push(`a connection was in use in ${Math.round(busyShare * 100)} % of ${samples.length} looks`)
      // Held connections would be in use all the time, and let one login a second through.
      expect(findings, busyShare < 0.5, 'connections are held while jobs are waited for')
      expect(findings, findings.succeeded === findings.requests, 'a login was refused or failed')
      return findings
    }),
}

/** A worker and two gateways that reach PostgreSQL through a proxy. */
async function onPostgres(
  stage: Stage,
  { poolSize, credential = CREDENTIAL }: { poolSize: number; credential?: 'wait-20' | 'wait-1000' },
  run: (parts: { system: ReturnType<typeof openSystem>; proxy: TcpProxy }) => Promise<Findings>,
): Promise<Findings> {
  const redis = await stage.redis()
  const proxy = await startProxy(stage.postgres.url)
  const system = openSystem(stage, {
    redisUrl: redis.url,
    databaseUrl: proxy.url,
    gatewayEnv: { DATABASE_POOL_SIZE: String(poolSize) },
    workerEnv: { WORKER_CONCURRENCY: '64' },
  })
  try {
    await Promise.all([system.worker(), system.gateway(), system.gateway()])
    await system.knowsWorkers(1)
    await stage.accounts.seed(credential)
    return await run({ system, proxy })
  } finally {
    await system.close()
    await proxy.close()
    await redis.close()
  }
}

export const postgresScenarios: readonly Scenario[] = [...underFaults, notHeld]
