/**
 * What a request will take before it is hashed: units of work, each of which takes one time on one
 * machine. Whatever hashes measures its units and tells them with its capacity.
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
  /** Mean of what these units foretold for the jobs timed beside them: a ratio for all others. */
  foretoldMs: number
}

/** What a request takes of a processor beside its units, in milliseconds. */
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

export function foretell({ kind, units }: Work, { argon2Ms, bcryptMs }: Omit<UnitCosts, 'foretoldMs'>): number {
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

  /** The mean of their times in milliseconds; of other formats as of what was hashed. */
  meanMs({ argon2Ms, bcryptMs, foretoldMs }: UnitCosts): number {
    if (this.#count === 0) return foretoldMs
    const { argon2, bcrypt } = this.#units
    const known = argon2 * argon2Ms + bcrypt * bcryptMs + (this.#count - this.#others) * REQUEST_MS
    return (known + this.#others * foretoldMs) / this.#count
  }

  #change(work: Work | undefined, by: 1 | -1): void {
    this.#count += by
    if (work === undefined) this.#others += by
    else this.#units[work.kind] += by * work.units
  }
}
