/** The policy of new hashes, an algorithm with its cost: as it travels in jobs, and as callers give it. */
import type { FromSchema } from 'json-schema-to-ts'
import { objectOf } from './object-schema.js'

/** A part of the schemas of requests. Its bounds are the costs that workers accept. */
export const HashPolicySchema = {
  type: 'object',
  discriminator: { propertyName: 'algorithm' },
  required: ['algorithm'],
  oneOf: [
    objectOf({
      algorithm: { const: 'argon2id' },
      memoryKib: { type: 'integer', minimum: 8, maximum: 1_048_576 },
      time: { type: 'integer', minimum: 1, maximum: 64 },
      parallelism: { type: 'integer', minimum: 1, maximum: 16 },
    }),
    objectOf({ algorithm: { const: 'bcrypt' }, cost: { type: 'integer', minimum: 4, maximum: 17 } }),
  ],
} as const
export type HashPolicy = FromSchema<{ oneOf: (typeof HashPolicySchema)['oneOf'] }>

export interface Argon2Cost {
  memoryKib: number
  time: number
  parallelism: number
}

/** bcrypt ignores all bytes after these, and implementations stop at a NUL. */
const BCRYPT_LIMIT_BYTES = 72

/** Whether bcrypt reads all of a password: if not, passwords with its beginning would match. */
export function bcryptReadsWhole(password: string): boolean {
  return Buffer.byteLength(password) <= BCRYPT_LIMIT_BYTES && !password.includes('\0')
}

/** A policy whose cost may be left out. */
type PartialPolicy = ({ algorithm: 'argon2id' } & Partial<Argon2Cost>) | { algorithm: 'bcrypt'; cost?: number }

/** OWASP's Password Storage Cheat Sheet: 19 MiB, 2 passes, 1 lane. */
const ARGON2ID = { memoryKib: 19_456, time: 2, parallelism: 1 }
/** OWASP's minimum is 10; 12 is the default of the packages for Node. */
const BCRYPT_COST = 12

/** Completes a policy. Throws for a cost that no worker accepts, and for other algorithms. */
export function completePolicy(policy: PartialPolicy = { algorithm: 'argon2id' }): HashPolicy {
  switch (policy.algorithm) {
    case 'bcrypt':
      refuseUnknown('policies of bcrypt', policy, { algorithm: true, cost: true })
      return { algorithm: 'bcrypt', cost: wholeNumber('cost of a policy', policy.cost ?? BCRYPT_COST, 4, 17) }
    case 'argon2id': {
      refuseUnknown('policies of argon2id', policy, { algorithm: true, ...ARGON2ID })
      const { memoryKib = ARGON2ID.memoryKib, time = ARGON2ID.time, parallelism = ARGON2ID.parallelism } = policy
      wholeNumber('parallelism of a policy', parallelism, 1, 16)
      wholeNumber('time of a policy', time, 1, 64)
      // RFC 9106, 3.1: eight blocks for each lane.
      wholeNumber('memoryKib of a policy', memoryKib, 8 * parallelism, 1_048_576)
      return { algorithm: 'argon2id', memoryKib, time, parallelism }
    }
    default:
      throw new TypeError('the algorithm of a policy is argon2id or bcrypt')
  }
}

/** Throws for unknown names: mostly typing errors, whose values would be ignored silently. */
export function refuseUnknown(what: string, given: object, known: object): void {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(known, name))
  if (unknown.length === 0) return
  throw new TypeError(`${what} have no ${unknown.join(', ')}: they have ${Object.keys(known).join(', ')}`)
}

export const CONCURRENCY_MAX = 1_024

/** @throws RangeError unless the value is a whole number between these bounds, inclusive */
export function wholeNumber(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new RangeError(`${name} is a whole number from ${min} to ${max}`)
}
