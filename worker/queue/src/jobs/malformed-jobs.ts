/**
 * Removes what anyone with write access to Redis can add and gateways never do: entries of a queue
 * that BullMQ cannot process, and wrong values of its keys. BullMQ fails on a malformed job, leaves
 * it active, and stall recovery moves it back: it occupies a slot again and again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Logger, ThrottledWarning, type Warnings } from '@spillway/common/throttled-warning'
import type { Job, Queue } from 'bullmq'
import { ReplyError } from 'ioredis'
import type { RedisConnection } from '../redis/connect.js'
import { defineScript, toList } from '../redis/script.js'
import type { RedisWatch } from '../redis/watch.js'
import { QUEUE_NAME } from '../wire/job.js'
import { readJob } from './jobs.js'
import { jobKey, lockKey, type QueuePart, queueKey, queueParts } from './keys.js'

/** The pause between scans, in milliseconds: hashing continues, however many jobs are forged. */
const SCAN_PAUSE_MS = 500
/** The longest pause, which scans that find nothing double: each reads thousands of jobs. */
const LONGEST_PAUSE_MS = 8_000

const JOB_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/
/** The counters of a BullMQ job: its scripts call HINCRBY on them, which fails on other text. */
const COUNTERS = ['ats', 'atm', 'stc'] as const
const COUNT = /^\d{1,9}$/
/** Options of every job: BullMQ's defaults, and those that gateways set. */
const OPTIONS = ['attempts', 'backoff', 'delay', 'jobId', 'priority', 'telemetry', 'timestamp']

interface MalformedJobsOptions {
  redis: RedisConnection
  prefix: string
  queue: Queue
  log: Pick<Logger, 'error'>
  watch: RedisWatch
  /** Options that jobs of this queue have beside the common ones. */
  jobOptions?: readonly string[]
  /** So many were removed. */
  removed(count: number): void
}

export class MalformedJobs {
  readonly #options: MalformedJobsOptions
  readonly #jobOptions: Set<string>
  #suspicion: { error: Error; times: number } | undefined
  #isScanning = false
  #isClosed = false

  constructor(options: MalformedJobsOptions) {
    this.#options = options
    this.#jobOptions = new Set([...OPTIONS, ...(options.jobOptions ?? [])])
  }

  /** Looks for malformed jobs where one may have caused this error of BullMQ; else logs it. */
  suspect(error: Error): void {
    if (!mayBeOfContents(error)) {
      this.#options.watch.queueFailed(error)
      return
    }
    this.#suspicion = { error, times: (this.#suspicion?.times ?? 0) + 1 }
    if (this.#isScanning) return
    this.#isScanning = true
    void this.#scan().finally(() => {
      this.#isScanning = false
    })
  }

  close(): void {
    this.#isClosed = true
  }

  async #scan(): Promise<void> {
    const { log, watch, removed: count } = this.#options
    let pauseMs = SCAN_PAUSE_MS
    while (this.#suspicion !== undefined && !this.#isClosed) {
      const { error, times } = this.#suspicion
      const removed = await this.#removeMalformed().catch(() => 0)
      pauseMs = removed > 0 ? SCAN_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, 2 * pauseMs)
      if (removed > 0) {
        count(removed)
        log.error({ code: 'forged_job', count: removed }, 'malformed jobs removed')
      } else {
        watch.queueFailed(error, times)
      }
      // Errors that arrived meanwhile are taken for the same cause; any other cause repeats them.
      this.#suspicion = undefined
      await sleep(pauseMs, undefined, { ref: false })
    }
  }

  async #removeMalformed(): Promise<number> {
    const { redis, prefix, queue } = this.#options
    if (redis.status !== 'ready') return 0
    const removals = [...(await nextEntries(redis, prefix, queue.name))].map(async (id) => {
      if (!(await this.#isMalformed(id))) return 0
      // An entry may be the name of one of the queue's own keys: only the keys of valid job ids are
      // deleted.
      return await removeEntry(redis, { prefix, queue: queue.name, entry: id, withJob: JOB_ID.test(id) })
    })
    return (await Promise.all(removals)).reduce((sum, removed) => sum + removed, 0)
  }

  async #isMalformed(id: string): Promise<boolean> {
    const { redis, prefix, queue } = this.#options
    const job = await readJob(queue, id)
    if (job === undefined) return false
    if (job === 'malformed' || !this.#isPlain(job)) return true
    const counts = await redis.hmget(jobKey(prefix, id, queue.name), ...COUNTERS)
    return counts.some((count) => count !== null && !COUNT.test(count))
  }

  /** Whether a job has no parents, repetition or other options that touch other keys. */
  #isPlain({ parent, parentKey, repeatJobKey, deduplicationId, opts }: Job): boolean {
    const isAlone = [parent, parentKey, repeatJobKey, deduplicationId].every((link) => link === undefined)
    return isAlone && Object.keys(opts).every((name) => this.#jobOptions.has(name))
  }
}

/** Whether the contents of a job may have caused an error: the state of Redis has other codes. */
function mayBeOfContents(error: Error): boolean {
  return !(error instanceof ReplyError) || /^(ERR|WRONGTYPE)\b/.test(error.message)
}

// Entries of lists and sets, whatever they name: anyone with write access to Redis can add one.

/** Entries that a scan reads at each end of a list or set: a thousand take a tenth of a second. */
const SCAN_LENGTH = 1_000
const removeFromAll = defineScript('removeEntry-8')

function listsAndSets(prefix: string, queue: string): { lists: string[]; sets: string[] } {
  return {
    lists: (['wait', 'active'] as const).map((part) => queueKey(prefix, part, queue)),
    sets: (['prioritized', 'delayed', 'completed', 'failed'] as const).map((part) => queueKey(prefix, part, queue)),
  }
}

/** The entries that BullMQ takes next, at the end of lists; new ones of `active` come first. */
async function nextEntries(redis: RedisConnection, prefix: string, queue: string): Promise<Set<string>> {
  const { lists, sets } = listsAndSets(prefix, queue)
  const found = await Promise.all([
    ...lists.flatMap((key) => [redis.lrange(key, 0, SCAN_LENGTH - 1), redis.lrange(key, -SCAN_LENGTH, -1)]),
    ...sets.map((key) => redis.zrange(key, '0', String(SCAN_LENGTH - 1))),
  ])
  return new Set(found.flat())
}

/** Removes an entry everywhere, with its job and lock if told to. 1 when it was there, else 0. */
export async function removeEntry(
  redis: RedisConnection,
  { prefix, queue, entry, withJob }: { prefix: string; queue: string; entry: string; withJob: boolean },
): Promise<number> {
  const { lists, sets } = listsAndSets(prefix, queue)
  const keys = [...lists, ...sets, jobKey(prefix, entry, queue), lockKey(prefix, entry, queue)]
  return Number(await removeFromAll(redis, keys, entry, withJob ? 1 : 0))
}

// A writer to Redis can put anything in the place of a number or a key, and BullMQ's scripts and
// ours would then fail for as long as it stays. So scripts reset what they write, and whoever takes
// the jobs of a queue removes the rest.

const parts = Object.keys(queueParts).filter((part): part is QueuePart => part in queueParts)

/** Jobs in hand whose locks are looked at. */
const LOCKS = 1_000
/** Longer than any lock or turn of BullMQ's lasts. */
const LOCK_MOST_MS = 60_000
/** Entries of BullMQ's stream of events that somebody may have it keep. */
const EVENTS_MOST = 100_000
const INTERVAL_MS = 1_000

const removeUnsound = defineScript('removeUnsound-14')

/** Removes from a queue's keys what BullMQ cannot have written, once a second. */
export class SoundQueue {
  readonly #timer: NodeJS.Timeout

  constructor(options: { redis: RedisConnection; prefix: string; name?: string; log: Warnings }) {
    const { redis, prefix, name = QUEUE_NAME, log } = options
    const keys = parts.map((part) => queueKey(prefix, part, name))
    const args = [jobKey(prefix, '', name), LOCKS, LOCK_MOST_MS, EVENTS_MOST, ...parts.map((part) => queueParts[part])]
    const found = new ThrottledWarning(log, 'wrong values in Redis were removed')
    const look = async (): Promise<void> => {
      if (redis.status !== 'ready') return
      const removed = toList(await removeUnsound(redis, keys, ...args))
      if (removed.length > 0) found.warn(new Error(removed.join(', ')), { times: removed.length })
    }
    this.#timer = setInterval(() => void look().catch(() => undefined), INTERVAL_MS)
    this.#timer.unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
