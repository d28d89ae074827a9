/** Queues of BullMQ on existing connections, their jobs, and the locks of jobs in hand. */
import { type Job, Queue, type Telemetry, type Worker } from 'bullmq'
import { jobKey, lockKey, queueKey } from './keys.js'
import { PROMOTED } from './order.js'
import type { RedisConnection } from './redis/connect.js'
import { defineScript } from './redis/script.js'
import type { RedisWatch } from './redis/watch.js'
import { QUEUE_NAME } from './wire/job.js'
import { resultKey } from './wire/reply.js'

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

/** A job; undefined also if somebody else wrote it and BullMQ cannot parse it. Rejects when Redis does not answer. */
export function readJob(queue: Queue, id: string): Promise<Job | undefined> {
  return queue.getJob(id).catch(skipUnreadable)
}

/** The data of a job as it is written, or undefined, as above. */
export async function readJobData(redis: RedisConnection, prefix: string, id: string): Promise<string | undefined> {
  return (await redis.hget(jobKey(prefix, id), 'data').catch(skipUnreadable)) ?? undefined
}

/** Lists of jobs skip invalid JSON, JSON of another type, and a key that is not a hash. Throws other errors. */
function skipUnreadable(error: unknown): undefined {
  const isOfContents = error instanceof SyntaxError || error instanceof TypeError
  if (!isOfContents && !(error instanceof Error && error.message.startsWith('WRONGTYPE'))) throw error
}

/**
 * Stops taking jobs, and resolves when the jobs in hand are finished. BullMQ would also wait for
 * the read of an idle consumer, which ends only when Redis is back.
 */
export async function closeConsumer(
  worker: Pick<Worker, 'close'>,
  { redis, isIdle }: { redis: Pick<RedisConnection, 'status'>; isIdle: boolean },
): Promise<void> {
  await worker.close(isIdle && redis.status !== 'ready')
}

const promoteOldest = defineScript<null>('promote-2', new URL('./scripts/', import.meta.url))

/** Makes the oldest ticketed jobs open: see order.ts. */
export async function promote(redis: RedisConnection, prefix: string): Promise<void> {
  const keys = [queueKey(prefix, 'prioritized'), queueKey(prefix, 'wait')]
  await promoteOldest(redis, keys, jobKey(prefix), PROMOTED)
}

/**
 * The state of a job. `ended`: it has no result, because it was skipped or has failed. `absent`: it
 * was never added, was removed, or was lost with its Redis.
 */
export type JobState = { kind: 'result'; sealed: string } | { kind: 'waiting' } | { kind: 'ended' } | { kind: 'absent' }

/** Rejects when Redis does not answer. */
export async function stateOfJob(redis: RedisConnection, prefix: string, id: string): Promise<JobState> {
  // In this order: a worker stores a result before its job is finished.
  const [[addedAt, finishedOn], sealed] = await Promise.all([
    redis.hmget(jobKey(prefix, id), 'timestamp', 'finishedOn'),
    redis.get(resultKey(prefix, id)),
  ])
  if (sealed !== null) return { kind: 'result', sealed }
  if (!addedAt) return { kind: 'absent' }
  return { kind: finishedOn ? 'ended' : 'waiting' }
}

/** The number of active jobs that are read: the latest ones, at the beginning of BullMQ's list. */
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

/** Locks a job in hand again after its lock has expired, unless another worker has the job. */
export async function retakeLock(
  redis: RedisConnection,
  prefix: string,
  { id, token }: LockedJob,
  lockMs: number,
): Promise<void> {
  const taken = await redis.set(lockKey(prefix, id), token, 'PX', lockMs, 'NX')
  if (taken !== null) await redis.srem(queueKey(prefix, 'stalled'), id)
}
