/** What a client may solve to log in without waiting, as a member of problems; and the headers that carry answers and device tokens. */
import type { FromSchema } from 'json-schema-to-ts'

export const ChallengeBody = {
  title: 'Challenge',
  description:
    'Solve it, and send the answer with the same call in the header Spillway-Challenge. An answer is good once.',
  type: 'object',
  properties: {
    kind: {
      type: 'string',
      enum: ['proof_of_work', 'outside'],
      description:
        'proof_of_work: the answer is `<token>.<text>`, with a text of up to 64 letters, digits, `-` and `_` that makes the SHA-256 of the ' +
        'answer begin with so many zero bits. outside: the answer is the token of the service that has this site key.',
    },
    token: { type: 'string', description: 'Of proof_of_work; for this account alone' },
    bits: { type: 'integer' },
    expiresIn: { type: 'integer', description: 'Seconds until it must have been sent' },
    siteKey: { type: 'string', description: 'Of outside' },
  },
  required: ['kind'],
  additionalProperties: false,
} as const
export type Challenge = FromSchema<typeof ChallengeBody>

/** The headers of a login, beside Prefer. Any text is valid: a text that proves nothing counts as no challenge. */
export const guessingHeaders = {
  'Spillway-Device': {
    type: 'string',
    description:
      'The deviceToken of an earlier login to the account from this device: it is then counted by itself, and goes first',
  },
  'Spillway-Challenge': { type: 'string', description: 'The answer to the challenge of a problem' },
} as const
