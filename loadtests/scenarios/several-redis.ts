// One, two and three Redis servers side by side, each slowed down to the same share of a core. So a small machine can show how jobs a
// second grow with their number: the processes around them have all the time they need.
import { setTimeout as sleep } from 'node:timers/promises'
import { createPasswordClient, type PasswordClient, parseKeyring } from '@spillway/client/queue-client'
import { processorTime } from '@spillway/infra/processes/processor-time'
import { openSpillway, until } from '@spillway/infra/rig'
import { startOwnRedis } from '@spillway/infra/rig/own-redis'
import { allOrNone } from '@spillway/infra/services/services'
import { createLogger } from '@spillway/worker/log'
import { TOKEN_HASH } from '../contenders/hashing.ts'
import { holdToShare } from '../measure/cores.ts'
import type { Measured } from '../src/results.ts'
import type { Scenario, Setting } from './scenario.ts'

const NUMBERS = [1, 2, 3]
/** Of a core, for each Redis server. With twice as much, a job costs Redis a fifth more when three of them share two cores with worker and client. */
const SHARE = 0.03
/** Enough that no caller waits for work. */
const CALLERS_A_REDIS = 24
/** More than callers: a job keeps its slot while its Redis is stopped. */
const SLOTS_A_REDIS = 48
/** At full speed, so that code is compiled; then slowed down, before anything is counted. */
const WARM_UP_MS = 1_500
const SETTLING_MS = 1_000
const JOB_LIFE_MS = 60_000

export const severalRedis: Scenario = {
  name: 'several-redis',
  title: 'Several Redis side by side',
  question:
    'How do jobs a second grow with the number of Redis, where each of them has the same small share of a core?',
  durationS: 8,
  settings: () => ({
    ofACorePercent: SHARE * 100,
    callersARedis: CALLERS_A_REDIS,
    slotsARedis: SLOTS_A_REDIS,
    slowedBy: 'SIGSTOP and SIGCONT by its processor time',
  }),
  plan: (setting) =>
    setting.contenders.some(({ name }) => name === 'spillway')
      ? NUMBERS.map((count) => ({
          contender: 'spillway',
          variant: `${count} Redis`,
          placement: 'together',
          measure: () => withRedis(count, setting),
        }))
      : [],
}

/** One worker and one client, as in a gateway, on so many Redis servers. */
async function withRedis(count: number, { services, durationS }: Setting): Promise<Measured> {
  const servers = await allOrNone(Array.from({ length: count }, startOwnRedis))
  const redisUrl = servers.map(({ url }) => url).join(' ')
  const spillway = openSpillway({
    databaseUrl: services.databaseUrl,
    redisUrl,
    keepOnly: 'nothing',
    workerEnv: { WORKER_CONCURRENCY: String(count * SLOTS_A_REDIS), SPILLWAY_TEST_HASHES: 'true' },
  })
  const client = createPasswordClient({
    redisUrl,
    prefix: spillway.queuePrefix,
    keyring: parseKeyring(spillway.sealKeys),
    jobLifeMs: JOB_LIFE_MS,
    log: createLogger({ service: 'load', level: 'silent' }),
  })
  try {
    await spillway.worker()
    const isKnown = () => client.load().slots > 0 && client.redis.every(({ isUsable }) => isUsable())
    await until(isKnown, { what: 'a worker and every Redis in use' })
    return await measure(client, { pids: servers.flatMap(({ pid }) => pid() ?? []), durationS })
  } finally {
    await client.close()
    await spillway.close()
    await Promise.all(servers.map((server) => server.close()))
  }
}

interface Slowed {
  /** Of the Redis. */
  pids: readonly number[]
  durationS: number
}

async function measure(client: Parameters<typeof startJobs>[0], { pids, durationS }: Slowed): Promise<Measured> {
  const jobs = startJobs(client, pids.length * CALLERS_A_REDIS)
  await sleep(WARM_UP_MS)
  const slowed = holdToShare(pids, SHARE)
  try {
    await sleep(SETTLING_MS)
    const read = () => ({ ...jobs.counts(), redisMs: threadMs(pids), atMs: performance.now() })
    const before = read()
    await sleep(durationS * 1_000)
    const after = read()
    const [done, failed] = [after.done - before.done, after.failed - before.failed]
    const [elapsedMs, redisMs] = [after.atMs - before.atMs, after.redisMs - before.redisMs]
    return {
      figures: {
        jobsPerSecond: (1_000 * done) / elapsedMs,
        redisMsPerJob: redisMs / Math.max(done, 1),
        redisPercent: (100 * redisMs) / elapsedMs / pids.length,
        failedPercent: (100 * failed) / Math.max(done + failed, 1),
      },
      series: {},
    }
  } finally {
    await slowed.close()
    await jobs.stop()
  }
}

/** Of the threads that run Redis's commands. */
function threadMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (processorTime(pid)?.eventLoopMs ?? Number.NaN), 0)
}

// Closed-loop load on the queue itself, by the client that gateways use: callers that have a verify done, which costs nothing, again and again.

const REQUEST = { password: 'correct horse', storedHash: TOKEN_HASH }
const ANSWER_WITHIN_MS = 10_000

function startJobs(client: Pick<PasswordClient, 'submit'>, callers: number) {
  const counts = { done: 0, failed: 0 }
  let isStopped = false

  async function verify(): Promise<boolean> {
    const pending = await client.submit('verify', REQUEST)
    return (await pending.answer({ waitMs: ANSWER_WITHIN_MS }))?.kind === 'match'
  }

  async function call(): Promise<void> {
    while (!isStopped) counts[(await verify().catch(() => false)) ? 'done' : 'failed'] += 1
  }

  const ended = Promise.all(Array.from({ length: callers }, call))
  return {
    /** So far. */
    counts: (): Readonly<typeof counts> => ({ ...counts }),
    async stop(): Promise<void> {
      isStopped = true
      await ended
    },
  }
}
