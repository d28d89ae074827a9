/**
 * Predicts the time of a request in units of work. On one machine, each unit always takes the same
 * time. Workers and processes measure their units, and publish them with their capacity.
 */
import type { Requests } from './job.js'
import type { HashPolicy } from './policy.js'
import { parseSetting, type Setting } from './setting.js'
import { parseStoredHash, type StoredHash } from './stored-hash.js'

/** KiB times passes of argon2, or rounds of bcrypt. */
export interface Work {
  kind: 'argon2' | 'bcrypt'
  units: number
}

/** Times in milliseconds of a processor. */
export interface UnitCosts {
  argon2Ms: number
  bcryptMs: number
  /** The mean estimate by these units for the timed jobs, used for all other formats. */
  estimatedMs: number
}

/** Processor time of a request in addition to its units, in milliseconds. */
const REQUEST_MS = 0.1

export function workOf(cost: HashPolicy | Setting | StoredHash): Work {
  if (cost.algorithm === 'bcrypt') return { kind: 'bcrypt', units: 2 ** cost.cost }
  return { kind: 'argon2', units: cost.memoryKib * cost.time }
}

/** Undefined for a stored hash of another format. */
export function workOfRequest(request: Requests['hash'] | Requests['verify'], policy: HashPolicy): Work | undefined {
  const { policy: wanted = policy } = request
  if ('storedHash' in request && request.storedHash !== null) {
    const stored = parseStoredHash(request.storedHash)
    return stored && workOf(stored)
  }
  const setting = 'exact' in request && request.exact !== undefined ? parseSetting(request.exact.setting) : undefined
  return workOf(setting ?? wanted)
}

export function estimateMs({ kind, units }: Work, { argon2Ms, bcryptMs }: Omit<UnitCosts, 'estimatedMs'>): number {
  return REQUEST_MS + units * (kind === 'argon2' ? argon2Ms : bcryptMs)
}

/** The work of several requests together. */
export class Tally {
  #count = 0
  #others = 0
  readonly #units = { argon2: 0, bcrypt: 0 }

  get count(): number {
    return this.#count
  }

  add(work: Work | undefined): void {
    this.#change(work, 1)
  }

  remove(work: Work | undefined): void {
    this.#change(work, -1)
  }

  /** The mean time in milliseconds. Other formats count with `estimatedMs`. */
  meanMs({ argon2Ms, bcryptMs, estimatedMs }: UnitCosts): number {
    if (this.#count === 0) return estimatedMs
    const { argon2, bcrypt } = this.#units
    const known = argon2 * argon2Ms + bcrypt * bcryptMs + (this.#count - this.#others) * REQUEST_MS
    return (known + this.#others * estimatedMs) / this.#count
  }

  #change(work: Work | undefined, by: 1 | -1): void {
    this.#count += by
    if (work === undefined) this.#others += by
    else this.#units[work.kind] += by * work.units
  }
}
