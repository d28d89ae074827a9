/** The policy of an application, completed and checked. */
import type { HashPolicy as CompletePolicy } from '@spillway/queue/wire/policy'
import type { HashPolicy } from './types.js'

/** OWASP's Password Storage Cheat Sheet: 19 MiB, 2 passes, 1 lane. */
const ARGON2ID = { memoryKib: 19_456, time: 2, parallelism: 1 }
/** OWASP's minimum is 10; 12 is what the packages for Node make without being told. */
const BCRYPT_COST = 12

/** Completes a policy. Throws for a cost that no worker accepts, another algorithm or name. */
export function completePolicy(policy: HashPolicy = { algorithm: 'argon2id' }): CompletePolicy {
  switch (policy.algorithm) {
    case 'bcrypt':
      refuseUnknown('policies of bcrypt', policy, { algorithm: true, cost: true })
      return { algorithm: 'bcrypt', cost: costBetween('cost', policy.cost ?? BCRYPT_COST, 4, 17) }
    case 'argon2id': {
      refuseUnknown('policies of argon2id', policy, { algorithm: true, ...ARGON2ID })
      const parallelism = costBetween('parallelism', policy.parallelism ?? ARGON2ID.parallelism, 1, 16)
      const time = costBetween('time', policy.time ?? ARGON2ID.time, 1, 64)
      // RFC 9106, 3.1: eight blocks for each lane.
      const memoryKib = costBetween('memoryKib', policy.memoryKib ?? ARGON2ID.memoryKib, 8 * parallelism, 1_048_576)
      return { algorithm: 'argon2id', memoryKib, time, parallelism }
    }
    default:
      throw new TypeError('the algorithm of a policy is argon2id or bcrypt')
  }
}

function costBetween(name: string, value: number, min: number, max: number): number {
  return wholeNumber(`${name} of a policy`, value, min, max)
}

/** Throws for unknown names: mostly typing errors, whose values would be ignored silently. */
export function refuseUnknown(what: string, given: object, known: object): void {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(known, name))
  if (unknown.length === 0) return
  throw new TypeError(`${what} have no ${unknown.join(', ')}: they have ${Object.keys(known).join(', ')}`)
}

/** Hashes at a time. */
export const CONCURRENCY_MAX = 1_024

/** @throws RangeError for any other number than a whole one between these, inclusively */
export function wholeNumber(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new RangeError(`${name} is a whole number from ${min} to ${max}`)
}
