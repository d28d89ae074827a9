// Redis and PostgreSQL are killed, emptied, full, replaced and slow.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { findRedis, redisCommand } from '@spillway/infra/services/redis'
import { startService } from '@spillway/infra/services/service'
import { arrivals } from '../../load/visit.ts'
import type { RedisServer, Scenario, Trial } from '../harness.ts'

const AWAY_MS = 3_000
const PER_SECOND = 30

const redisKilled: Scenario = {
  name: 'redis-killed',
  promise:
    'Redis is killed and back after 3 s: every request has a defined answer, and all goes well again without a restart.',
  async try(trial) {
    const system = await trial.spillway({})
    await trial.whilePeopleCome(system, PER_SECOND, async () => {
      await system.redis.kill()
      await sleep(AWAY_MS)
      await system.redis.start()
    })
  },
}

const redisFull: Scenario = {
  name: 'redis-full',
  promise: 'Redis takes no writes for 3 s (maxmemory): every request has a defined answer, and all goes well again.',
  async try(trial) {
    const system = await trial.spillway({})
    await trial.whilePeopleCome(system, PER_SECOND, async () => {
      await system.redis.command('CONFIG', 'SET', 'maxmemory', 1)
      await sleep(AWAY_MS)
      await system.redis.command('CONFIG', 'SET', 'maxmemory', 0)
    })
    const refused = trial.visits.filter(({ end }) => end === 'refused').length
    trial.expect(refused > 0, 'nobody was refused, so nothing was tried')
  },
}

/** Forty logins a second, so that the line of these people is ten seconds long. */
const fullLine = { hash: 'wait-100', gateways: 1, workers: 1 } as const
const PEOPLE = { perSecond: 100, seconds: 4 }
const IN_FULL_LINE_MS = 3_000

const redisEmptied: Scenario = {
  name: 'redis-emptied',
  promise: 'Redis is emptied (FLUSHALL) while hundreds wait: no ticket is lost, and everyone gets in.',
  async try(trial) {
    const system = await trial.spillway(fullLine)
    const coming = arrivals(system.people({ everyNthWrong: 0, tries: Number.POSITIVE_INFINITY }), PEOPLE)
    await sleep(IN_FULL_LINE_MS)
    const answered = await system.workersTell('spillway_jobs_total', 'outcome="hashed"')
    await system.redis.command('FLUSHALL')
    trial.visits.push(...(await coming))
    trial.figure(`emptied when ${answered} had been hashed`)
    const lost = trial.visits.reduce((sum, { ticketsLost }) => sum + ticketsLost, 0)
    trial.expectFigure(lost === 0, `${lost} tickets lost`)
    trial.expectAllAnswered()
  },
}

const postgresAway: Scenario = {
  name: 'postgres-away',
  promise: 'PostgreSQL is killed and away for 3 s while hundreds wait: everyone gets in, and no hash is made twice.',
  async try(trial) {
    const { postgres } = trial.servers
    const system = await trial.spillway(fullLine)
    const coming = arrivals(system.people({ everyNthWrong: 0, tries: Number.POSITIVE_INFINITY }), PEOPLE)
    await sleep(IN_FULL_LINE_MS)
    await postgres.kill()
    await sleep(AWAY_MS)
    await postgres.start()
    trial.visits.push(...(await coming))
    const met = trial.visits.filter(({ failures }) => failures > 0).length
    trial.expectFigure(met > 0, `${met} met a failure`)
    const twice = (await system.workersTell('spillway_jobs_total', 'outcome="hashed"')) - trial.visits.length
    trial.expectFigure(twice === 0, `${twice} hashes made twice`)
    trial.expectAllAnswered()
  },
}

/** In each direction. A login takes three round trips and more: too long for two connections. */
const DELAY_MS = 300

const postgresSlow: Scenario = {
  name: 'postgres-slow',
  promise:
    'PostgreSQL answers 0.6 s later for 5 s, too late for its connections: 503 meanwhile, and all goes well again.',
  async try(trial) {
    const proxy = await trial.postgresProxy()
    const gatewayEnv = { DATABASE_POOL_SIZE: '2' }
    const system = await trial.spillway({ workers: 1, databaseUrl: proxy.url, gatewayEnv })
    await trial.whilePeopleCome(system, PER_SECOND, async () => {
      proxy.delayMs = DELAY_MS
      await sleep(5_000)
      proxy.delayMs = 0
    })
    const refused = trial.visits.filter(({ end }) => end === 'refused').length
    trial.expect(refused > 0, 'nobody was refused, so nothing was tried')
  },
}

const redisReplaced: Scenario = {
  name: 'redis-replaced',
  promise:
    'Sentinels replace a killed Redis by its replica: every request has a defined answer, and all goes well again.',
  async try(trial) {
    const [first, second] = [await trial.redis(), await trial.redis()]
    const sentinels = await startSentinels(trial, first, second)
    const redisUrl = `redis+sentinel://${sentinels.map((url) => new URL(url).host).join(',')}/${MASTER}`
    const system = await trial.spillway({ redisUrl })
    await trial.whilePeopleCome(system, PER_SECOND, async () => {
      await first.kill()
      const isMaster = async () => String(await second.command('INFO', 'replication')).includes('role:master')
      await until(isMaster, { timeoutMs: 20_000, what: 'a replica that has become the master' })
    })
  },
}

const MASTER = 'main'

/** Three of them, once they know each other, the master, and a replica in step with it. */
async function startSentinels(trial: Trial, master: RedisServer, replica: RedisServer): Promise<string[]> {
  await replica.command('REPLICAOF', '127.0.0.1', master.port)
  const inStep = async () => String(await replica.command('INFO', 'replication')).includes('master_link_status:up')
  await until(inStep, { what: 'a replica in step with its master' })
  const urls = await Promise.all([1, 2, 3].map(() => startSentinel(trial, master)))
  const told = () => redisCommand(urls[0] ?? '', 'SENTINEL', 'MASTER', MASTER).then(String)
  const knowsAll = async () => /num-slaves,1\b/.test(await told()) && /num-other-sentinels,2\b/.test(await told())
  await until(knowsAll, { what: 'Sentinels that know each other and the replica' })
  return urls
}

async function startSentinel(trial: Trial, master: RedisServer): Promise<string> {
  const { keeper } = trial.servers
  const port = await freePort()
  const dir = trial.newDir('sentinel')
  // A Sentinel writes what it learns into its configuration, so that has to be a file.
  const file = join(dir, 'sentinel.conf')
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${JSON.stringify(dir)}`,
    `sentinel monitor ${MASTER} 127.0.0.1 ${master.port} 2`,
    `sentinel down-after-milliseconds ${MASTER} 1000`,
    `sentinel failover-timeout ${MASTER} 4000`,
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  const program = await findRedis({ keeper, say: () => undefined, dir })
  const { url, kill } = await startService({
    keeper,
    name: 'Sentinel',
    process: { ...program, args: [file, '--sentinel'] },
    logFile: join(dir, 'sentinel.log'),
    url: `redis://127.0.0.1:${port}`,
    ping: (at) => redisCommand(at, 'SENTINEL', 'MASTERS'),
  })
  trial.atEnd(kill)
  return url
}

export const serverScenarios: readonly Scenario[] = [
  redisKilled,
  redisEmptied,
  redisFull,
  redisReplaced,
  postgresAway,
  postgresSlow,
]
