/** Redis keys of the queue: BullMQ's own, which any version may change, and ours. */
import { QUEUE_NAME } from '../wire/job.js'

/** BullMQ's keys of a queue, beside those of jobs, and the type of each. */
export const queueParts = {
  ...{ stalled: 'set', wait: 'list', active: 'list', prioritized: 'zset', delayed: 'zset', completed: 'zset' },
  ...{ failed: 'zset', marker: 'zset', meta: 'hash', id: 'string', pc: 'string', limiter: 'string' },
  ...{ 'stalled-check': 'string', events: 'stream' },
} as const
export type QueuePart = keyof typeof queueParts

/**
 * One of BullMQ's own keys. `wait` has held jobs, `prioritized` deferred ones, `stalled` those
 * whose locks are checked next, `meta` the settings; `marker` wakes idle workers.
 */
export function queueKey(prefix: string, part: QueuePart, queue: string = QUEUE_NAME): string {
  return `${prefix}:${queue}:${part}`
}

/** BullMQ's hash of a job; without a job id, the prefix of all of them. */
export function jobKey(prefix: string, jobId = '', queue: string = QUEUE_NAME): string {
  return `${prefix}:${queue}:${jobId}`
}

/** The lock of an active job: its value is the token with which BullMQ moves it. */
export function lockKey(prefix: string, jobId: string, queue: string = QUEUE_NAME): string {
  return `${jobKey(prefix, jobId, queue)}:lock`
}

/** Hash: last number given, count of abandoned tickets, job whose client came back last. */
export function lineKey(prefix: string): string {
  return `${prefix}:line`
}

/**
 * The set of jobs that were passed over or set aside, by deadline. Scores of jobs that are behind
 * are less by {@link BEHIND_BY}: these come first.
 */
export function absentKey(prefix: string): string {
  return `${prefix}:absent`
}

/** More than any deadline, in milliseconds. */
export const BEHIND_BY = 2 ** 43

/** Set of absent jobs whose clients came back, by deadline, until workers take them. */
export function returnedKey(prefix: string): string {
  return `${prefix}:returned`
}

/** Names the job of a known device that was brought forward last. */
export function lastKnownKey(prefix: string): string {
  return `${prefix}:last-known`
}

/** A key that a client writes to find out whether Redis takes writes again. */
export function probeKey(prefix: string, clientId: string): string {
  return `${prefix}:probe:${clientId}`
}

/** Converts the result of HGETALL in a script, which alternates names and values. */
export function toEntries(pairs: unknown): Record<string, string> {
  const entries: Record<string, string> = {}
  if (Array.isArray(pairs))
    for (let i = 0; i + 1 < pairs.length; i += 2) entries[String(pairs[i])] = String(pairs[i + 1])
  return entries
}
