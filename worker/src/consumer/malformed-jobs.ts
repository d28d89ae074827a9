/**
 * What stands in the queue and is no job. BullMQ meets it with an error and leaves it active, stall recovery puts it back, and so
 * it goes round, taking a slot each time. No gateway makes such a thing; whoever writes to Redis can. It is removed, once.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { jobKey, queueKey } from '@spillway/client/protocol/capacity'
import { openQueue } from '@spillway/client/queue/open-queue'
import { readJob } from '@spillway/client/queue/read-job'
import type { RedisConnection } from '@spillway/client/redis/connect'
import type { RedisWatch } from '@spillway/client/redis/watch'
import type { Job } from 'bullmq'
import type { WorkerMetrics } from '../ops/metrics.js'
import type { Logger } from '../process/log.js'

/** How many entries of each list and set one look takes: a thousand take a tenth of a second. */
const LOOK_LENGTH = 1_000
/** From one look to the next: however much is forged, hashing goes on. */
const LOOK_GAP_MS = 500

const JOB_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/
/** What BullMQ counts in a job, which its scripts do with HINCRBY. */
const COUNTERS = ['ats', 'atm', 'stc'] as const
const COUNT = /^\d{1,9}$/
/** The options that a gateway's jobs have, by BullMQ's defaults or because a gateway sets them. */
const OPTIONS = new Set(['attempts', 'backoff', 'delay', 'jobId', 'priority', 'telemetry', 'timestamp'])

/**
 * Lua: takes an entry out of the queue, wherever it is. KEYS: the two lists, the four sets, the job's hash, its lock. ARGV: the
 * entry, 1 to delete the last two keys. Returns 1 where it was in the queue.
 */
const REMOVE = `
local removed = 0
for i = 1, 2 do removed = removed + redis.call('LREM', KEYS[i], 0, ARGV[1]) end
for i = 3, 6 do removed = removed + redis.call('ZREM', KEYS[i], ARGV[1]) end
if ARGV[2] == '1' then redis.call('DEL', KEYS[7], KEYS[8]) end
return math.min(removed, 1)`

export interface MalformedJobs {
  /** Told of each error that BullMQ has: those that malformed jobs make end with them, any other is logged. */
  suspect(error: Error): void
  close(): Promise<void>
}

export function watchForMalformedJobs(options: {
  redis: RedisConnection
  prefix: string
  log: Logger
  watch: RedisWatch
  metrics: Pick<WorkerMetrics, 'jobs'>
}): MalformedJobs {
  const { redis, prefix, log, watch, metrics } = options
  const queue = openQueue(options)
  const lists = [queueKey(prefix, 'wait'), queueKey(prefix, 'active')]
  const sets = (['prioritized', 'delayed', 'completed', 'failed'] as const).map((part) => queueKey(prefix, part))
  let suspicion: { error: Error; times: number } | undefined
  let looking = false
  let closed = false

  /** The entries that BullMQ comes upon next. A list is taken from its end, and what is new in `active` is at its beginning. */
  async function entries(): Promise<Set<string>> {
    const found = await Promise.all([
      ...lists.flatMap((key) => [redis.lrange(key, 0, LOOK_LENGTH - 1), redis.lrange(key, -LOOK_LENGTH, -1)]),
      ...sets.map((key) => redis.zrange(key, '0', String(LOOK_LENGTH - 1))),
    ])
    return new Set(found.flat())
  }

  async function isMalformed(id: string): Promise<boolean> {
    const job = await readJob(queue, id)
    if (job === undefined) return false
    if (job === 'malformed' || !isPlain(job)) return true
    const counts = await redis.hmget(jobKey(prefix, id), ...COUNTERS)
    return counts.some((count) => count !== null && !COUNT.test(count))
  }

  async function remove(id: string): Promise<number> {
    const keys = [...lists, ...sets, jobKey(prefix, id), `${jobKey(prefix, id)}:lock`]
    // An entry may have the name of one of the queue's own keys: what is not named as jobs are is left where it is.
    return Number(await redis.eval(REMOVE, keys.length, ...keys, id, JOB_ID.test(id) ? 1 : 0))
  }

  async function removeMalformed(): Promise<number> {
    if (redis.status !== 'ready') return 0
    const removals = [...(await entries())].map(async (id) => ((await isMalformed(id)) ? await remove(id) : 0))
    return (await Promise.all(removals)).reduce((sum, removed) => sum + removed, 0)
  }

  async function look(): Promise<void> {
    while (suspicion !== undefined && !closed) {
      const { error, times } = suspicion
      const removed = await removeMalformed().catch(() => 0)
      if (removed > 0) {
        metrics.jobs.inc({ job: 'unknown', outcome: 'forged' }, removed)
        log.error({ code: 'forged_job', count: removed }, 'malformed jobs removed')
      } else {
        watch.queueFailed(error, times)
      }
      // What came meanwhile is of the same cause; where it is not, it comes again.
      suspicion = undefined
      await sleep(LOOK_GAP_MS, undefined, { ref: false })
    }
  }

  return {
    suspect(error) {
      suspicion = { error, times: (suspicion?.times ?? 0) + 1 }
      if (looking) return
      looking = true
      void look().finally(() => {
        looking = false
      })
    },
    async close() {
      closed = true
      await queue.close()
    },
  }
}

/** Whether a job is on its own: parents, repetition, deduplication and options of its own lead BullMQ to keys that may be anything. */
function isPlain({ parent, parentKey, repeatJobKey, deduplicationId, opts }: Job): boolean {
  const isAlone = [parent, parentKey, repeatJobKey, deduplicationId].every((link) => link === undefined)
  return isAlone && Object.keys(opts).every((name) => OPTIONS.has(name))
}
