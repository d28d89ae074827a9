/**
 * The wire, part three: every worker writes its capacity into one hash a few times a second, and every gateway reads the
 * whole hash with the depth of the queue in one round trip. An entry that is not renewed counts for nothing.
 */
import type { FromSchema } from 'json-schema-to-ts'
import { QUEUE_NAME } from './job.js'
import { checkFor } from './schema.js'

export const PUBLISH_INTERVAL_MS = 500
/** A worker unheard of for this long is not counted: gateways notice within two seconds that the last one is gone. */
export const FRESH_FOR_MS = 1_500
/** An entry that has not been renewed for this long is swept out; the hash itself goes away when nobody has written to it for so long. */
export const CAPACITY_KEY_TTL_S = 60

const Count = { type: 'integer', minimum: 0 } as const
const WorkerCapacity = {
  type: 'object',
  properties: {
    /** Jobs it hashes at a time. */
    slots: { type: 'integer', minimum: 1, maximum: 1_024 },
    /** What one job takes it of late, in milliseconds, hashing alone. */
    serviceMs: { type: 'number', exclusiveMinimum: 0, maximum: 600_000 },
    /** Whether it stands in at a gateway while there is no worker. */
    fallback: { type: 'boolean' },
    /** When it wrote this: epoch milliseconds by Redis's clock. */
    at: { type: 'integer' },
    /** For operators only: where it runs, its slots in use, and what became of its jobs since it started. */
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
  /** Whether Redis answered the last time it was asked. */
  known: boolean
  /** Live workers, without the fallbacks of gateways. */
  workers: number
  /** Slots of workers and fallbacks, and the jobs per second they could finish together. */
  slots: number
  jobsPerSecond: number
  /** The mean service time over all slots, in milliseconds; 0 without workers. */
  serviceMs: number
  /** Jobs that wait among the held ones, and among the deferred ones. */
  waiting: number
  deferred: number
  active: number
}

/**
 * Lua: writes one worker's entry, stamped by Redis's clock, and renews the hash.
 * KEYS: capacity hash, waiting list, deferred set, active list, meta hash. ARGV: worker id, the entry as JSON without its
 * time, seconds the hash lives. Returns the time in epoch milliseconds, and how many jobs wait that could be taken: none while
 * operators hold the queue back, by a pause or by a limit on its rate or on what is active at a time.
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
 * Lua: everything admission needs in one round trip.
 * KEYS: capacity hash, waiting list, deferred set, active list. Returns the time in epoch milliseconds, the three lengths, the
 * hash's pairs.
 */
export const READ_LOAD = `
local time = redis.call('TIME')
return {time[1] * 1000 + math.floor(time[2] / 1000), redis.call('LLEN', KEYS[2]), redis.call('ZCARD', KEYS[3]),
  redis.call('LLEN', KEYS[4]), redis.call('HGETALL', KEYS[1])}`

/**
 * Lua: removes the entries of workers that are gone without having taken theirs along. KEYS: capacity hash. ARGV: seconds an entry
 * is kept. What has no time goes as well. Whatever else an entry holds is not judged: it may be that of a newer version.
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

/** The hash that holds an entry for each worker. */
export function capacityKey(prefix: string): string {
  return `${prefix}:capacity`
}

/**
 * One of BullMQ's own keys: the lists of jobs that wait (`wait` for held ones) or are active, the sorted sets of deferred
 * (`prioritized`) and finished ones, the settings.
 */
export function queueKey(
  prefix: string,
  part: 'wait' | 'prioritized' | 'delayed' | 'active' | 'completed' | 'failed' | 'meta',
): string {
  return `${prefix}:${QUEUE_NAME}:${part}`
}

/** The hash of a job as BullMQ stores it; of no job, the start of every job's. */
export function jobKey(prefix: string, jobId = ''): string {
  return `${prefix}:${QUEUE_NAME}:${jobId}`
}

/** What HGETALL gives inside of a script: names and values by turns. */
export function toEntries(pairs: unknown): Record<string, string> {
  const entries: Record<string, string> = {}
  if (Array.isArray(pairs))
    for (let i = 0; i + 1 < pairs.length; i += 2) entries[String(pairs[i])] = String(pairs[i + 1])
  return entries
}

/** The entries that are fresh at `now`, by worker id; what is not a valid entry is passed over. */
export function liveWorkers(entries: Record<string, string>, now: number): Map<string, WorkerCapacity> {
  const live = new Map<string, WorkerCapacity>()
  for (const [id, entry] of Object.entries(entries)) {
    const capacity = parseCapacity(entry)
    if (capacity !== undefined && Math.abs(now - capacity.at) <= FRESH_FOR_MS) live.set(id, capacity)
  }
  return live
}

/** What live workers could do together. */
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

/** The jobs that a worker has ended since it started, whatever became of them. */
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
