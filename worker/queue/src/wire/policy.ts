/** The policy of new hashes as it travels in jobs: an algorithm with its cost. */
import type { FromSchema } from 'json-schema-to-ts'
import { objectOf } from './object-schema.js'

/** A part of the schemas of requests; its bounds are what a worker accepts of anybody. */
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

export type Argon2Cost = Omit<Extract<HashPolicy, { algorithm: 'argon2id' }>, 'algorithm'>

/** bcrypt ignores all bytes after these, and implementations stop at a NUL. */
const BCRYPT_LIMIT_BYTES = 72

/** Whether bcrypt reads all of a password: else any other with its beginning would match. */
export function bcryptReadsWhole(password: string): boolean {
  return Buffer.byteLength(password) <= BCRYPT_LIMIT_BYTES && !password.includes('\0')
}
