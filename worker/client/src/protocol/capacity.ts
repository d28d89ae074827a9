/**
 * The wire, part three: capacity. Every worker writes an entry into one hash a few times a second; every gateway reads the hash and
 * the depth of the queue in one round trip. Entries that are not renewed expire.
 */
import type { FromSchema } from 'json-schema-to-ts'
import { QUEUE_NAME } from './job.js'
import { checkFor } from './schema.js'

export const PUBLISH_INTERVAL_MS = 500
/** An older entry does not count: gateways notice within two seconds that the last worker is gone. */
export const FRESH_FOR_MS = 1_500
/** After this long without renewal an entry is deleted; after this long without any write, the hash expires. */
export const CAPACITY_KEY_TTL_S = 60

const Count = { type: 'integer', minimum: 0 } as const
const WorkerCapacity = {
  type: 'object',
  properties: {
    /** Jobs it hashes at a time. */
    slots: { type: 'integer', minimum: 1, maximum: 1_024 },
    /** The moving average of the service time, in milliseconds. */
    serviceMs: { type: 'number', exclusiveMinimum: 0, maximum: 600_000 },
    /** Whether it is the fallback of a gateway. */
    fallback: { type: 'boolean' },
    /** The time of writing: epoch milliseconds by Redis's clock. */
    at: { type: 'integer' },
    /** For operators only: host and process, slots in use, outcomes of jobs since its start. */
    name: { type: 'string', maxLength: 128 },
    busy: Count,
    finished: {
      type: 'object',
      properties: { answered: Count, expired: Count, failed: Count },
      required: ['answered', 'expired', 'failed'],
      additionalProperties: false,
    },
  },
  required: ['slots', 'serviceMs', 'fallback', 'at', 'name', 'busy', 'finished'],
  additionalProperties: false,
} as const
export type WorkerCapacity = FromSchema<typeof WorkerCapacity>
const isWorkerCapacity = checkFor<WorkerCapacity>(WorkerCapacity)

/** The state of the queue as one gateway last read it. */
export interface Load {
  /** Whether Redis answered the last reading. */
  known: boolean
  /** Live workers, without the fallbacks of gateways. */
  workers: number
  /** Slots of workers and fallbacks, and the jobs per second that they can finish together. */
  slots: number
  jobsPerSecond: number
  /** The mean service time over all slots, in milliseconds; 0 without workers. */
  serviceMs: number
  /** Waiting jobs of the held lane, and of the deferred lane. */
  waiting: number
  deferred: number
  active: number
}

/**
 * Lua: writes one worker's entry with Redis's time, and renews the hash.
 * KEYS: capacity hash, waiting list, deferred set, active list, meta hash. ARGV: worker id, the entry as JSON without its time,
 * TTL of the hash in seconds. Returns the time in epoch milliseconds, and the number of jobs that can be taken: 0 while the queue is
 * paused, limited in its rate, or at its limit of active jobs.
 */
export const PUBLISH_CAPACITY = `
local time = redis.call('TIME')
local entry = cjson.decode(ARGV[2])
entry.at = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(entry))
redis.call('EXPIRE', KEYS[1], ARGV[3])
local paused, rate, limit = unpack(redis.call('HMGET', KEYS[5], 'paused', 'max', 'concurrency'))
local held = paused or rate or (limit and redis.call('LLEN', KEYS[4]) >= tonumber(limit))
return {entry.at, held and 0 or redis.call('LLEN', KEYS[2]) + redis.call('ZCARD', KEYS[3])}`

/**
 * Lua: reads the load, all that admission needs.
 * KEYS: capacity hash, waiting list, deferred set, active list. Returns the time in epoch milliseconds, the three lengths, the
 * hash's pairs.
 */
export const READ_LOAD = `
local time = redis.call('TIME')
return {time[1] * 1000 + math.floor(time[2] / 1000), redis.call('LLEN', KEYS[2]), redis.call('ZCARD', KEYS[3]),
  redis.call('LLEN', KEYS[4]), redis.call('HGETALL', KEYS[1])}`

/**
 * Lua: deletes the entries of workers that ended without deleting theirs, and entries without a time. Other fields are not checked:
 * the entry may be of a newer version. KEYS: capacity hash. ARGV: seconds that an entry is kept.
 */
export const SWEEP_CAPACITY = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local isJson, entry = pcall(cjson.decode, fields[i + 1])
  local at = isJson and type(entry) == 'table' and entry.at
  local isFresh = type(at) == 'number' and math.abs(now - at) <= ARGV[1] * 1000
  if not isFresh then redis.call('HDEL', KEYS[1], fields[i]) end
end
return 1`

/** The hash with an entry for each worker. */
export function capacityKey(prefix: string): string {
  return `${prefix}:capacity`
}

/**
 * One of BullMQ's own keys: the lists of held (`wait`) and active jobs, the sorted sets of deferred (`prioritized`) and finished jobs,
 * the settings (`meta`).
 */
export function queueKey(
  prefix: string,
  part: 'wait' | 'prioritized' | 'delayed' | 'active' | 'completed' | 'failed' | 'meta',
): string {
  return `${prefix}:${QUEUE_NAME}:${part}`
}

/** BullMQ's hash of a job; without a job id, the prefix of all of them. */
export function jobKey(prefix: string, jobId = ''): string {
  return `${prefix}:${QUEUE_NAME}:${jobId}`
}

/** Converts the result of HGETALL in a script, which alternates names and values. */
export function toEntries(pairs: unknown): Record<string, string> {
  const entries: Record<string, string> = {}
  if (Array.isArray(pairs))
    for (let i = 0; i + 1 < pairs.length; i += 2) entries[String(pairs[i])] = String(pairs[i + 1])
  return entries
}

/** The valid entries that are fresh at `now`, by worker id. */
export function liveWorkers(entries: Record<string, string>, now: number): Map<string, WorkerCapacity> {
  const live = new Map<string, WorkerCapacity>()
  for (const [id, entry] of Object.entries(entries)) {
    const capacity = parseCapacity(entry)
    if (capacity !== undefined && Math.abs(now - capacity.at) <= FRESH_FOR_MS) live.set(id, capacity)
  }
  return live
}

/** The capacity of all live workers together. */
export function sumCapacity(
  workers: ReadonlyMap<string, WorkerCapacity>,
): Pick<Load, 'workers' | 'slots' | 'jobsPerSecond' | 'serviceMs'> {
  const live = [...workers.values()]
  const slots = live.reduce((sum, worker) => sum + worker.slots, 0)
  const jobsPerSecond = live.reduce((sum, worker) => sum + (worker.slots * 1_000) / worker.serviceMs, 0)
  return {
    workers: live.filter((worker) => !worker.fallback).length,
    slots,
    jobsPerSecond,
    serviceMs: slots === 0 ? 0 : (slots * 1_000) / jobsPerSecond,
  }
}

/** The jobs that a worker has finished since it started, with any outcome. */
export function finishedBy({ finished: { answered, expired, failed } }: WorkerCapacity): number {
  return answered + expired + failed
}

function parseCapacity(entry: string): WorkerCapacity | undefined {
  try {
    const value: unknown = JSON.parse(entry)
    return isWorkerCapacity(value) ? value : undefined
  } catch {
    return undefined
  }
}
