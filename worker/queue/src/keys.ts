/** Redis keys of the queue: BullMQ's own, which any version may change, and ours. */
import { QUEUE_NAME } from './wire/job.js'

type QueuePart =
  | ('wait' | 'prioritized' | 'delayed' | 'active' | 'completed' | 'failed')
  | ('stalled' | 'stalled-check' | 'meta' | 'marker')

/**
 * One of BullMQ's own keys. `wait` has the open jobs, `prioritized` the ticketed jobs, `stalled`
 * the jobs whose locks are checked next, and `meta` the settings. `marker` wakes idle workers.
 */
export function queueKey(prefix: string, part: QueuePart): string {
  return `${prefix}:${QUEUE_NAME}:${part}`
}

/** BullMQ's hash of a job; without a job id, the common prefix of these keys. */
export function jobKey(prefix: string, jobId = ''): string {
  return `${prefix}:${QUEUE_NAME}:${jobId}`
}

/** The lock of an active job: its value is the token with which BullMQ moves it. */
export function lockKey(prefix: string, jobId: string): string {
  return `${jobKey(prefix, jobId)}:lock`
}

export function lineKey(prefix: string): string {
  return `${prefix}:line`
}

/** A key that a client writes to find out whether Redis takes writes again. */
export function probeKey(prefix: string, clientId: string): string {
  return `${prefix}:probe:${clientId}`
}
