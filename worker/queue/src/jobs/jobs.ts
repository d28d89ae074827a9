/** Queues of BullMQ on existing connections, and what became of their jobs. */
import { type Job, Queue, type Telemetry, type Worker } from 'bullmq'
import type { RedisConnection } from '../redis/connect.js'
import { defineScript, toList } from '../redis/script.js'
import type { RedisWatch } from '../redis/watch.js'
import { QUEUE_NAME } from '../wire/job.js'
import { presentKey, verdictKey } from '../wire/reply.js'
import { absentKey, jobKey, lastKnownKey, lockKey, queueKey, returnedKey, toEntries } from './keys.js'

/** Sends no command by itself: Redis may be unreachable when a process starts. */
export function openQueue(options: {
  redis: RedisConnection
  prefix: string
  /** [the queue of password jobs] */
  name?: string
  watch: RedisWatch
  telemetry?: Telemetry | undefined
}): Queue {
  const { redis, prefix, name = QUEUE_NAME, watch, telemetry } = options
  const queue = new Queue(name, {
    connection: redis,
    prefix,
    skipWaitingForReady: true,
    skipVersionCheck: true,
    skipMetasUpdate: true,
    ...(telemetry ? { telemetry } : {}),
  })
  queue.on('error', (error) => watch.queueFailed(error))
  return queue
}

/** The job; `malformed` when BullMQ cannot parse it. Throws when Redis does not answer. */
export async function readJob(queue: Pick<Queue, 'getJob'>, id: string): Promise<Job | 'malformed' | undefined> {
  try {
    return await queue.getJob(id)
  } catch (error) {
    // Invalid JSON, JSON of another type, or a key that is no hash. Other errors are not caused by
    // the job.
    const isOfContents = error instanceof SyntaxError || error instanceof TypeError
    if (isOfContents || (error instanceof Error && error.message.startsWith('WRONGTYPE'))) return 'malformed'
    throw error
  }
}

/**
 * Takes no more jobs, and resolves when those in hand are finished. BullMQ would wait for an idle
 * consumer's read, which is answered when Redis is back.
 */
export async function closeConsumer(
  worker: Pick<Worker, 'close'>,
  { redis, isIdle }: { redis: Pick<RedisConnection, 'status'>; isIdle: boolean },
): Promise<void> {
  await worker.close(isIdle && redis.status !== 'ready')
}

const askForJobs = defineScript('findJobs-2')

/** Sealed verdicts by job id, ids of jobs with neither a verdict nor a hash, and ids of failed jobs. */
export async function findJobs(redis: RedisConnection, prefix: string, jobIds: readonly string[]) {
  const keys = [verdictKey(prefix, ''), jobKey(prefix)]
  const answer = await askForJobs(redis, keys, ...jobIds)
  const [verdicts, lost, failed] = toList(answer)
  const idsOf = (ids: unknown) => toList(ids).map(String)
  return { verdicts: toEntries(toList(verdicts)), lost: idsOf(lost), failed: idsOf(failed) }
}

const removeWaiting = defineScript('removeWaitingJob-7')

/** True when the job waited and was removed. Active and finished jobs are left alone. */
export async function removeWaitingJob(redis: RedisConnection, prefix: string, jobId: string): Promise<boolean> {
  const waiting = [queueKey(prefix, 'wait'), queueKey(prefix, 'prioritized')]
  const ofJob = [jobKey(prefix, jobId), lastKnownKey(prefix), absentKey(prefix), presentKey(prefix, jobId)]
  const keys = [...waiting, ...ofJob, returnedKey(prefix)]
  return (await removeWaiting(redis, keys, jobId)) === 1
}

/** Active jobs that are looked at: the latest, at the beginning of BullMQ's list. */
const SCAN_LENGTH = 1_000

export interface LockedJob {
  id: string
  /** The value of the lock, which BullMQ asks for to move the job. */
  token: string
}

/** @param consumerId the id of BullMQ's Worker, with which its tokens begin */
export async function lockedJobs(redis: RedisConnection, prefix: string, consumerId: string): Promise<LockedJob[]> {
  const active = await redis.lrange(queueKey(prefix, 'active'), 0, SCAN_LENGTH - 1)
  if (active.length === 0) return []
  const tokens = await redis.mget(active.map((id) => lockKey(prefix, id)))
  return active.flatMap((id, n) => {
    const token = tokens[n]
    return token?.startsWith(`${consumerId}:`) ? [{ id, token }] : []
  })
}

const lockAgain = defineScript('retakeLock-3')

/** Locks a job again that is still active and that nobody else has taken. */
export async function retakeLock(
  redis: RedisConnection,
  prefix: string,
  { id, token }: LockedJob,
  lockMs: number,
): Promise<void> {
  const keys = [lockKey(prefix, id), queueKey(prefix, 'active'), queueKey(prefix, 'stalled')]
  await lockAgain(redis, keys, token, lockMs, id)
}
