/**
 * The wire, part three: capacity. Every worker renews its entry in one hash twice a second; every
 * gateway reads the hash and the depth of the queue in one round trip (jobs/capacity.ts).
 */
import type { FromSchema } from 'json-schema-to-ts'
import { objectOf } from './object-schema.js'
import { checkFor } from './schema.js'
import type { Keyring } from './seal.js'
import type { UnitCosts } from './work.js'

export const PUBLISH_INTERVAL_MS = 500
/** Age up to which an entry counts: within two seconds the last worker is known to be gone. */
export const FRESH_FOR_MS = 1_500
/** Seconds without renewal after which entries, and then the hash, are deleted. */
export const CAPACITY_KEY_TTL_S = 60

const Count = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const
/** Workers publish whole microseconds, one at least: less would be no bound. */
const Time = { type: 'number', minimum: 0.001, maximum: 600_000 } as const
/** Of a KiB and pass of argon2, or of a round of bcrypt. */
const UnitTime = { type: 'number', minimum: 1e-9, maximum: 1_000 } as const
const WorkerCapacity = objectOf({
  /** Its hashing threads. */
  slots: { type: 'integer', minimum: 1, maximum: 1_024 },
  /** Time of a slot for each job under load: in the next seconds, and in a ticket's life. */
  serviceMs: Time,
  lineMs: Time,
  /** Mean time from taking a job to its hash: longer where several are hashed together. */
  latencyMs: Time,
  /** {@link UnitCosts} */
  unitCosts: objectOf({ argon2Ms: UnitTime, bcryptMs: UnitTime, foretoldMs: Time }),
  /** Whether it is the fallback of a gateway. */
  fallback: { type: 'boolean' },
  /** Codes of its seal keys, as canaryOf makes them. */
  keys: { type: 'string', maxLength: 2_048 },
  /** The time of writing: epoch milliseconds by Redis's clock. */
  at: { type: 'integer' },
  /** For operators only: host and process, slots in use. */
  name: { type: 'string', maxLength: 128 },
  busy: Count,
  /** Active jobs that wait for another system's answer, and take no slot. */
  asking: Count,
  /** Jobs since its start, by outcome: its times count as measured from the first answer on. */
  finished: objectOf({ answered: Count, expired: Count, failed: Count }),
})
export type WorkerCapacity = FromSchema<typeof WorkerCapacity>
const isWorkerCapacity = /* @__PURE__ */ checkFor<WorkerCapacity>(WorkerCapacity)

/** The capacity of all live workers together. */
export interface TotalCapacity {
  /** Live workers, without the fallbacks of gateways. */
  workers: number
  /** Slots of workers and fallbacks, and their jobs a second in the next seconds. */
  slots: number
  jobsPerSecond: number
  /** The same over a ticket's life, by which the line is admitted; never 0 (load-state.ts). */
  linePerSecond: number
  /** Mean times of a slot for each job, and from taking a job to its hash; 0 without workers. */
  serviceMs: number
  latencyMs: number
  /** The mean over all slots of what work takes there; undefined without workers. */
  unitCosts?: UnitCosts | undefined
}

export interface Depth {
  /** Whether operators have paused the queue [false]: workers then take no jobs. */
  paused?: boolean
  /** Waiting jobs of the held lane, known devices included, and of the deferred lane. */
  waiting: number
  deferred: number
  /** Those that take no slot do not count: they wait for another system's answer. */
  active: number
  /** Jobs that were passed over or set aside, and wait for their clients. */
  absent: number
  /** Other jobs, whose clients came back: deferred ones, which take turns with the line. */
  returned: number
  /** Waiting jobs before the next job of a known device, if there are as many. */
  aheadOfKnown: number
}

/** The state of the queue as one gateway last read it. */
export interface Load extends TotalCapacity, Depth {
  /** Whether Redis answered the last reading. */
  known: boolean
}

/** The hash with an entry for each worker. */
export function capacityKey(prefix: string): string {
  return `${prefix}:capacity`
}

/** The valid entries that are fresh at `now`, by worker id. */
export function liveWorkers(entries: Record<string, string>, now: number, withinMs = FRESH_FOR_MS) {
  const live = new Map<string, WorkerCapacity>()
  for (const [id, entry] of Object.entries(entries)) {
    const capacity = parseCapacity(entry)
    if (capacity !== undefined && Math.abs(now - capacity.at) <= withinMs) live.set(id, capacity)
  }
  return live
}

/**
 * The capacity of all live workers together. A new worker does not know what hashes accounts have:
 * until it has answered a job, it counts as the mean of workers that have, if there are any.
 */
export function sumCapacity(workers: ReadonlyMap<string, WorkerCapacity>): TotalCapacity {
  const live = [...workers.values()]
  const measured = live.filter(({ finished }) => finished.answered > 0)
  const sum = sumAsTold(live)
  if (measured.length === 0) return sum
  const { slots, jobsPerSecond, linePerSecond, serviceMs, latencyMs, unitCosts } = sumAsTold(measured)
  const more = sum.slots / slots
  return {
    ...sum,
    ...{ serviceMs, latencyMs, unitCosts },
    jobsPerSecond: jobsPerSecond * more,
    linePerSecond: linePerSecond * more,
  }
}

function sumAsTold(live: readonly WorkerCapacity[]): TotalCapacity {
  const sum = (of: (worker: WorkerCapacity) => number) => live.reduce((total, worker) => total + of(worker), 0)
  const slots = sum((worker) => worker.slots)
  const mean = (of: (worker: WorkerCapacity) => number) => sum((worker) => of(worker) * worker.slots) / (slots || 1)
  const meanUnit = (unit: keyof UnitCosts) => mean(({ unitCosts }) => unitCosts[unit])
  const jobsPerSecond = sum((worker) => (worker.slots * 1_000) / worker.serviceMs)
  return {
    ...{ workers: live.filter((worker) => !worker.fallback).length, slots, jobsPerSecond },
    linePerSecond: sum((worker) => (worker.slots * 1_000) / worker.lineMs),
    serviceMs: slots === 0 ? 0 : (slots * 1_000) / jobsPerSecond,
    latencyMs: mean(({ latencyMs }) => latencyMs),
    unitCosts:
      slots === 0
        ? undefined
        : { argon2Ms: meanUnit('argon2Ms'), bcryptMs: meanUnit('bcryptMs'), foretoldMs: meanUnit('foretoldMs') },
  }
}

export function sumAsking(workers: ReadonlyMap<string, WorkerCapacity>): number {
  return [...workers.values()].reduce((sum, { asking }) => sum + asking, 0)
}

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

// The canary: codes of seal keys, which tell nothing of the keys. Workers publish theirs with their
// capacity, and the last one in a key that outlives it: clients and workers notice other keys.

/** Milliseconds that a canary keeps workers with other keys from taking jobs. */
export const CANARY_COUNTS_MS = 10_000

/** The start of each code: no two keys share it by accident. */
const CODE_BYTES = 12

export function canaryKey(prefix: string): string {
  return `${prefix}:canary`
}

/** A code for each key, of the key that seals first. */
export function canaryOf(keyring: Keyring, prefix: string): string {
  const macs = keyring.macs({ purpose: 'canary', id: prefix })
  return macs.map((mac) => mac.subarray(0, CODE_BYTES).toString('base64url')).join()
}

/** Whether each of two keyrings opens what the other seals: so it is all through a rotation. */
export function areForEachOther(one: string, other: string): boolean {
  const [ours, theirs] = [one.split(','), other.split(',')]
  return ours.includes(theirs[0] ?? '') && theirs.includes(ours[0] ?? '')
}
