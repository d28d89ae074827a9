/**
 * The wire, part three: capacity. Every worker renews its entry in one hash twice a second; every
 * gateway reads the hash and the depth of the queue in one round trip (capacity.ts).
 */
import type { FromSchema } from 'json-schema-to-ts'
import { objectOf } from './object-schema.js'
import { checkFor } from './schema.js'
import type { Keyring } from './seal.js'

export const PUBLISH_INTERVAL_MS = 500
/** The age up to which an entry counts: a lost worker is noticed within two seconds. */
export const FRESH_FOR_MS = 1_500
/** Seconds without renewal after which entries, and then the hash, are deleted. */
export const CAPACITY_KEY_TTL_S = 60

const Count = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const
/** Workers publish whole microseconds, at least one: a time of 0 would be an infinite capacity. */
const Time = { type: 'number', minimum: 0.001, maximum: 600_000 } as const
const WorkerCapacity = objectOf({
  /** Its hashing threads. */
  slots: { type: 'integer', minimum: 1, maximum: 1_024 },
  /** Time of a slot for each job under load: in the next seconds, and in a ticket's life. */
  serviceMs: Time,
  lineMs: Time,
  /** Mean time from taking a job to its hash: longer if several jobs are hashed together. */
  latencyMs: Time,
  /** Fingerprints of its seal keys: see {@link fingerprintsOf}. */
  keys: { type: 'array', items: { type: 'string', maxLength: 32 }, maxItems: 64 },
  /** The time of writing: epoch milliseconds by Redis's clock. */
  at: { type: 'integer' },
  /** For operators only: host and process, slots in use. */
  name: { type: 'string', maxLength: 128 },
  busy: Count,
  /** Jobs since its start, by outcome. Its times count as measured after the first answer. */
  finished: objectOf({ answered: Count, skipped: Count, failed: Count }),
})
export type WorkerCapacity = FromSchema<typeof WorkerCapacity>
const isWorkerCapacity = /* @__PURE__ */ checkFor<WorkerCapacity>(WorkerCapacity)

/** The capacity of all live workers together. */
export interface TotalCapacity {
  workers: number
  /** Their slots, and their jobs a second in the next seconds. */
  slots: number
  jobsPerSecond: number
  /** The same over a ticket's life, by which the line is admitted. */
  linePerSecond: number
  /** Mean times of a slot for each job, and from taking a job to its hash; 0 without workers. */
  serviceMs: number
  latencyMs: number
}

export const NO_CAPACITY = /* @__PURE__ */ sumCapacity(new Map())

/** The hash with an entry for each worker. */
export function capacityKey(prefix: string): string {
  return `${prefix}:capacity`
}

/** The valid entries that were written within this time (ms), by worker id. */
export function liveWorkers(entries: Record<string, string>, now: number, withinMs = FRESH_FOR_MS) {
  const live = new Map<string, WorkerCapacity>()
  for (const [id, entry] of Object.entries(entries)) {
    const capacity = parseCapacity(entry)
    if (capacity !== undefined && Math.abs(now - capacity.at) <= withinMs) live.set(id, capacity)
  }
  return live
}

/**
 * The capacity of all live workers together. A new worker does not know which hashes accounts have.
 * Until it has answered a job, it counts as the mean of the workers that have answered one.
 */
export function sumCapacity(workers: ReadonlyMap<string, WorkerCapacity>): TotalCapacity {
  const live = [...workers.values()]
  const answered = live.filter(({ finished }) => finished.answered > 0)
  const measured = answered.length > 0 ? answered : live
  const sum = (of: (worker: WorkerCapacity) => number) => measured.reduce((total, worker) => total + of(worker), 0)
  const slots = live.reduce((total, worker) => total + worker.slots, 0)
  const measuredSlots = sum((worker) => worker.slots) || 1
  const jobsPerSecond = sum((worker) => (worker.slots * 1_000) / worker.serviceMs)
  const linePerSecond = sum((worker) => (worker.slots * 1_000) / worker.lineMs)
  return {
    workers: live.length,
    slots,
    jobsPerSecond: jobsPerSecond * (slots / measuredSlots),
    linePerSecond: linePerSecond * (slots / measuredSlots),
    serviceMs: slots === 0 ? 0 : (measuredSlots * 1_000) / jobsPerSecond,
    latencyMs: sum((worker) => worker.latencyMs * worker.slots) / measuredSlots,
  }
}

function parseCapacity(entry: string): WorkerCapacity | undefined {
  try {
    const value: unknown = JSON.parse(entry)
    return isWorkerCapacity(value) ? value : undefined
  } catch {
    return undefined
  }
}

// Fingerprints of seal keys, which reveal nothing about the keys. Workers publish those of all
// their keys with their capacity, clients that of their first key. So each side notices other keys.

/** How often a client publishes its key, and how long that counts, in milliseconds. */
export const SEALING_INTERVAL_MS = 4_000
export const SEALING_COUNTS_MS = 10_000

/** The length of a fingerprint, the start of a code: two keys do not share it by accident. */
const FINGERPRINT_BYTES = 12

/** A sorted set: the fingerprint of the key that each client seals with, by the time when it was published. */
export function sealingKey(prefix: string): string {
  return `${prefix}:sealing`
}

/** The fingerprint of each key; the first is that of the key that seals. */
export function fingerprintsOf(keyring: Keyring, prefix: string): [string, ...string[]] {
  const [first, ...others] = keyring.macs({ purpose: 'fingerprint', id: prefix })
  const fingerprint = (mac: Buffer) => mac.subarray(0, FINGERPRINT_BYTES).toString('base64url')
  return [fingerprint(first), ...others.map(fingerprint)]
}
