/**
 * The state of the queue beside BullMQ's own: workers publish their capacity, clients the key that
 * they seal with, and both read the rest.
 */
import type { ChainableCommander } from 'ioredis'
import { lineKey, queueKey } from './keys.js'
import type { QueueCounts } from './order.js'
import { askOnNewConnection, type RedisConnection } from './redis/connect.js'
import {
  CAPACITY_KEY_TTL_S,
  capacityKey,
  liveWorkers,
  SEALING_COUNTS_MS,
  sealingKey,
  type WorkerCapacity,
} from './wire/capacity.js'
import { TICKETED_PRIORITY } from './wire/job.js'

/** BullMQ's score of a ticketed job is this value plus the job's number. */
export const FIRST_SCORE = TICKETED_PRIORITY * 2 ** 32

export interface QueueState extends QueueCounts {
  /** The number of the first job in line; undefined if nobody is in line. */
  first: number | undefined
  /** The last number that was given out; 0 before the first. */
  last: number
}

export interface RawReading extends QueueState {
  /** Epoch milliseconds by Redis's clock. */
  at: number
  /** Gateways and applications that use the queue. */
  clients: number
  /** JSON by worker id, not checked. */
  workers: Record<string, string>
}

/** Reads the queue in one round trip. Rejects when Redis does not answer. */
export async function readQueue(redis: RedisConnection, prefix: string, now: number): Promise<RawReading> {
  const [time, workers, open, line, active, first, last, paused, clients] = await answersOf(
    redis
      .pipeline()
      .time()
      .hgetall(capacityKey(prefix))
      .llen(queueKey(prefix, 'wait'))
      .zcard(queueKey(prefix, 'prioritized'))
      .llen(queueKey(prefix, 'active'))
      .zrange(queueKey(prefix, 'prioritized'), '0', '0', 'WITHSCORES')
      .get(lineKey(prefix))
      .hexists(queueKey(prefix, 'meta'), 'paused')
      .zcount(sealingKey(prefix), String(now - SEALING_COUNTS_MS), '+inf'),
  )
  const [, score] = listOf(first)
  return {
    at: epochMs(time),
    paused: paused === 1,
    open: Number(open),
    line: Number(line),
    active: Number(active),
    first: score === undefined ? undefined : Number(score) - FIRST_SCORE,
    last: Number(last),
    clients: Number(clients),
    workers: Object(workers),
  }
}

export interface Publication {
  /** Epoch milliseconds by Redis's clock. */
  at: number
  /** Waiting jobs that can be taken: 0 while the queue is paused or limited. */
  waiting: number
  /** Jobs in the hands of all workers. */
  active: number
  /** Fingerprints of the keys that gateways and applications seal with. */
  sealing: string[]
}

/** Writes a worker's entry, and asks nothing: the hash keeps its expiry. */
export async function renewCapacity(
  redis: RedisConnection,
  prefix: string,
  workerId: string,
  entry: WorkerCapacity,
): Promise<void> {
  await redis.hset(capacityKey(prefix), workerId, JSON.stringify(entry))
}

/** Writes a worker's entry, and reads what the worker needs to know. */
export async function writeCapacity(
  redis: RedisConnection,
  prefix: string,
  workerId: string,
  entry: WorkerCapacity,
): Promise<Publication> {
  const [time, , , open, line, active, limits, sealing] = await answersOf(
    redis
      .pipeline()
      .time()
      .hset(capacityKey(prefix), workerId, JSON.stringify(entry))
      .expire(capacityKey(prefix), CAPACITY_KEY_TTL_S)
      .llen(queueKey(prefix, 'wait'))
      .zcard(queueKey(prefix, 'prioritized'))
      .llen(queueKey(prefix, 'active'))
      .hmget(queueKey(prefix, 'meta'), 'paused', 'max', 'concurrency')
      .zrangebyscore(sealingKey(prefix), entry.at - SEALING_COUNTS_MS, '+inf'),
  )
  const [paused, rate, concurrency] = listOf(limits)
  const isLimited = concurrency !== null && Number(active) >= Number(concurrency)
  return {
    at: epochMs(time),
    waiting: paused !== null || rate !== null || isLimited ? 0 : Number(open) + Number(line),
    active: Number(active),
    sealing: listOf(sealing).map((member) => String(member).split(' ')[0] ?? ''),
  }
}

/** Publishes the key that a client seals with: workers without it take no jobs. */
export async function publishSealing(
  redis: RedisConnection,
  prefix: string,
  { fingerprint, clientId, now }: { fingerprint: string; clientId: string; now: number },
): Promise<void> {
  const key = sealingKey(prefix)
  await Promise.all([
    redis.zadd(key, now, `${fingerprint} ${clientId}`),
    redis.zremrangebyscore(key, '-inf', now - CAPACITY_KEY_TTL_S * 1_000),
    redis.expire(key, CAPACITY_KEY_TTL_S),
  ])
}

/** Whether workers published their capacity in the last minute. False if Redis does not answer. */
export async function hasWorkers(redisUrl: string, prefix: string): Promise<boolean> {
  return (await askOnNewConnection(redisUrl, (redis) => redis.exists(capacityKey(prefix)))) === 1
}

/** Deletes the entries of workers that ended without deleting theirs. */
export async function sweepCapacity(redis: RedisConnection, prefix: string, now: number): Promise<void> {
  const entries = await redis.hgetall(capacityKey(prefix))
  const live = liveWorkers(entries, now, CAPACITY_KEY_TTL_S * 1_000)
  const dead = Object.keys(entries).filter((id) => !live.has(id))
  if (dead.length > 0) await redis.hdel(capacityKey(prefix), ...dead)
}

/** The answers of a pipeline. Throws the first error. */
async function answersOf(pipeline: ChainableCommander): Promise<unknown[]> {
  const answers = (await pipeline.exec()) ?? []
  const failed = answers.find(([error]) => error !== null)
  if (failed) throw failed[0]
  return answers.map(([, answer]) => answer)
}

function listOf(answer: unknown): unknown[] {
  return Array.isArray(answer) ? answer : []
}

function epochMs(time: unknown): number {
  const [seconds, microseconds] = listOf(time)
  return Math.round(Number(seconds) * 1_000 + Number(microseconds) / 1_000)
}
