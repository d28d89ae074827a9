/**
 * Removes malformed jobs: entries of the queue that BullMQ cannot process. BullMQ fails on one, leaves it active, and stall recovery
 * moves it back, so that it occupies a slot again and again. Gateways never create one; anyone with write access to Redis can.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { nextEntries, removeEntry } from '@spillway/client/queue/entries'
import { jobKey } from '@spillway/client/queue/keys'
import { readJob } from '@spillway/client/queue/open-queue'
import type { RedisConnection } from '@spillway/client/redis/connect'
import type { RedisWatch } from '@spillway/client/redis/watch'
import type { Job, Queue } from 'bullmq'
import { ReplyError } from 'ioredis'
import type { WorkerMetrics } from '../ops/metrics.js'
import type { Logger } from '../process/log.js'

/** The pause between scans, in milliseconds: hashing continues, however many jobs are forged. */
const SCAN_PAUSE_MS = 500
/** The longest pause. Each scan that finds nothing doubles the pause, because a scan reads thousands of jobs. */
const LONGEST_PAUSE_MS = 8_000

const JOB_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/
/** The counters of a BullMQ job: its scripts call HINCRBY on them, which fails on other text. */
const COUNTERS = ['ats', 'atm', 'stc'] as const
const COUNT = /^\d{1,9}$/
/** The options of a gateway's jobs: BullMQ's defaults, and those that gateways set. */
const OPTIONS = new Set(['attempts', 'backoff', 'delay', 'jobId', 'priority', 'telemetry', 'timestamp'])

export interface MalformedJobs {
  /** Takes an error of BullMQ. Looks for malformed jobs where one may be the cause, and logs the error when it finds no such job. */
  suspect(error: Error): void
  close(): void
}

export function watchForMalformedJobs(options: {
  redis: RedisConnection
  prefix: string
  queue: Queue
  log: Logger
  watch: RedisWatch
  metrics: Pick<WorkerMetrics, 'jobs'>
}): MalformedJobs {
  const { redis, prefix, queue, log, watch, metrics } = options
  let suspicion: { error: Error; times: number } | undefined
  let isScanning = false
  let closed = false

  async function isMalformed(id: string): Promise<boolean> {
    const job = await readJob(queue, id)
    if (job === undefined) return false
    if (job === 'malformed' || !isPlain(job)) return true
    const counts = await redis.hmget(jobKey(prefix, id), ...COUNTERS)
    return counts.some((count) => count !== null && !COUNT.test(count))
  }

  // An entry may be the name of one of the queue's own keys: only the keys of valid job ids are deleted.
  const remove = (id: string) => removeEntry(redis, prefix, id, JOB_ID.test(id))

  async function removeMalformed(): Promise<number> {
    if (redis.status !== 'ready') return 0
    const removals = [...(await nextEntries(redis, prefix))].map(async (id) =>
      (await isMalformed(id)) ? await remove(id) : 0,
    )
    return (await Promise.all(removals)).reduce((sum, removed) => sum + removed, 0)
  }

  async function scan(): Promise<void> {
    let pauseMs = SCAN_PAUSE_MS
    while (suspicion !== undefined && !closed) {
      const { error, times } = suspicion
      const removed = await removeMalformed().catch(() => 0)
      pauseMs = removed > 0 ? SCAN_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, 2 * pauseMs)
      if (removed > 0) {
        metrics.jobs.inc({ job: 'unknown', outcome: 'forged' }, removed)
        log.error({ code: 'forged_job', count: removed }, 'malformed jobs removed')
      } else {
        watch.queueFailed(error, times)
      }
      // Errors that arrived meanwhile are taken for the same cause; any other cause repeats them.
      suspicion = undefined
      await sleep(pauseMs, undefined, { ref: false })
    }
  }

  return {
    suspect(error) {
      if (!mayBeOfContents(error)) return watch.queueFailed(error)
      suspicion = { error, times: (suspicion?.times ?? 0) + 1 }
      if (isScanning) return
      isScanning = true
      void scan().finally(() => {
        isScanning = false
      })
    },
    close() {
      closed = true
    },
  }
}

/** Whether an error of BullMQ may come from the contents of a job. The state of Redis has codes of its own, as OOM and READONLY. */
function mayBeOfContents(error: Error): boolean {
  return !(error instanceof ReplyError) || /^(ERR|WRONGTYPE)\b/.test(error.message)
}

/** Whether a job refers to nothing else: with parents, repetition, deduplication or further options BullMQ touches other keys. */
function isPlain({ parent, parentKey, repeatJobKey, deduplicationId, opts }: Job): boolean {
  const isAlone = [parent, parentKey, repeatJobKey, deduplicationId].every((link) => link === undefined)
  return isAlone && Object.keys(opts).every((name) => OPTIONS.has(name))
}
