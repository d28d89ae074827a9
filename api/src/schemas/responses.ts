/** Responses that several routes share, for OpenAPI. Their headers are documentation only. */

import { objectOf } from '@spillway/queue/wire/object-schema'
import type { FromSchema } from 'json-schema-to-ts'
import { TicketBody } from './bodies.js'
import { errorCodes } from './problem-codes.js'

/** What a client may solve to log in without waiting, as a member of problems. */
const ChallengeBody = {
  title: 'Challenge',
  description:
    'Solve it, and send the answer with the same call in the header Spillway-Challenge. An answer is good once.',
  ...objectOf(
    {
      kind: {
        type: 'string',
        enum: ['proof_of_work', 'outside'],
        description:
          'proof_of_work: the answer is `<token>.<text>`, with a text of up to 64 letters, digits, `-` and `_` that makes the SHA-256 of the ' +
          'answer begin with so many zero bits. outside: the answer is the token of the service that has this site key.',
      },
    },
    {
      token: { type: 'string', description: 'Of proof_of_work; for this account alone' },
      bits: { type: 'integer' },
      expiresIn: { type: 'integer', description: 'Seconds until it must have been sent' },
      siteKey: { type: 'string', description: 'Of outside' },
    },
  ),
} as const
export type Challenge = FromSchema<typeof ChallengeBody>

export const ProblemBody = {
  title: 'Problem',
  description: 'Why a request was not answered as it asked (RFC 9457)',
  ...objectOf(
    {
      type: { const: 'about:blank' },
      title: { type: 'string', description: 'The phrase of the status (RFC 9110)' },
      status: { type: 'integer', minimum: 400, maximum: 599 },
      code: { type: 'string', enum: errorCodes },
      detail: { type: 'string', description: 'One sentence for people; the same for every problem with this code' },
      requestId: { type: 'string', description: 'As in X-Request-Id: tell it to support' },
    },
    {
      errors: {
        type: 'array',
        items: {
          title: 'FieldError',
          ...objectOf({ field: { type: 'string' }, message: { type: 'string' } }, { code: { type: 'string' } }),
        },
      },
      challenge: ChallengeBody,
    },
  ),
  examples: [
    {
      type: 'about:blank',
      title: 'Unprocessable Content',
      status: 422,
      code: 'invalid_request',
      detail: 'The request is not valid',
      requestId: '019a7f3e-5c1b-7d0a-9b1e-2f60c8a1d4e7',
      errors: [{ field: 'email', message: 'must be an e-mail address' }],
    },
  ],
} as const

const retryAfter = {
  'Retry-After': { type: 'integer', description: 'Seconds after which to try again (RFC 9110)' },
} as const
const rateLimit = {
  'RateLimit-Limit': {
    type: 'integer',
    description: 'Requests a minute that the limit allows: the limit of the address, or the limit that refused',
  },
  'RateLimit-Remaining': { type: 'integer', description: 'How many of them are left' },
  'RateLimit-Reset': { type: 'integer', description: 'Seconds until all of them are left again' },
} as const

/** The response when the answer takes longer than the request is held. */
export const ticketResponse = {
  ...TicketBody,
  headers: {
    ...retryAfter,
    'Preference-Applied': { type: 'string', description: 'The preferences that were applied (RFC 7240)' },
  },
} as const

/** A problem among the responses of a route. */
export const problemResponse = {
  description: 'A problem (RFC 9457)',
  content: { 'application/problem+json': { schema: ProblemBody } },
}
export const unauthorizedProblem = {
  ...problemResponse,
  headers: { 'WWW-Authenticate': { type: 'string', description: 'Bearer (RFC 6750)' } },
}
export const limitProblem = { ...problemResponse, headers: { ...retryAfter, ...rateLimit } }

/** Problems of every route, and of every route with a body. */
export const anyProblem = {
  403: problemResponse,
  500: problemResponse,
  503: { ...problemResponse, headers: retryAfter },
}
export const bodyProblems = {
  400: problemResponse,
  413: problemResponse,
  415: problemResponse,
  422: problemResponse,
  ...anyProblem,
}

/** The headers of a login, beside Prefer. Any text is valid. */
export const guessingHeaders = {
  'Spillway-Device': {
    type: 'string',
    description:
      'The deviceToken of an earlier login to the account from this device: it is then counted by itself, and goes first',
  },
  'Spillway-Challenge': { type: 'string', description: 'The answer to the challenge of a problem' },
} as const
