/** Parts of the bodies of the service API. */
import type { FromSchema } from 'json-schema-to-ts'

const STORED_HASH_MAX_LENGTH = 1_024

export const StoredHashField = {
  type: ['string', 'null'],
  maxLength: STORED_HASH_MAX_LENGTH,
  description:
    'A stored hash of any format that workers know; null for an unknown user: that takes as long as a hash of the policy, and never ' +
    'matches',
  examples: ['$2b$12$KIXQ4aVRzAN1sVYq3xXbFe1uWbFmVWWlqk4fRr3rL5y8m3Ew2S1pK'],
} as const

export const PolicyField = {
  title: 'Policy',
  description: 'Algorithm and cost of new hashes [the policy of the workers]',
  type: 'object',
  discriminator: { propertyName: 'algorithm' },
  required: ['algorithm'],
  oneOf: [
    {
      title: 'Argon2idPolicy',
      type: 'object',
      properties: {
        algorithm: { const: 'argon2id' },
        memoryKib: { type: 'integer', minimum: 8, maximum: 1_048_576, description: 'KiB, 8 or more a lane [19456]' },
        time: { type: 'integer', minimum: 1, maximum: 64, description: 'Passes [2]' },
        parallelism: { type: 'integer', minimum: 1, maximum: 16, description: 'Lanes [1]' },
      },
      required: ['algorithm'],
      additionalProperties: false,
    },
    {
      title: 'BcryptPolicy',
      type: 'object',
      properties: {
        algorithm: { const: 'bcrypt' },
        cost: { type: 'integer', minimum: 4, maximum: 17, description: 'The logarithm of its rounds [12]' },
      },
      required: ['algorithm'],
      additionalProperties: false,
    },
  ],
} as const
export type PolicyField = FromSchema<{ oneOf: (typeof PolicyField)['oneOf'] }>
