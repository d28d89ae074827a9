/** Responses that several routes share, for OpenAPI. Their headers are documentation only. */

import { objectOf } from '@spillway/queue/wire/object-schema'
import { TicketBody } from './bodies.js'
import { errorCodes } from './problem-codes.js'

export const ProblemBody = {
  title: 'Problem',
  description: 'The reason why a request failed (RFC 9457)',
  ...objectOf(
    {
      type: { const: 'about:blank' },
      title: { type: 'string', description: 'The reason phrase of the status (RFC 9110)' },
      status: { type: 'integer', minimum: 400, maximum: 599 },
      code: { type: 'string', enum: errorCodes },
      detail: { type: 'string', description: 'One sentence for people; the same for every problem with this code' },
      requestId: { type: 'string', description: 'The value of X-Request-Id. Users can give it to support' },
    },
    {
      errors: {
        type: 'array',
        items: {
          title: 'FieldError',
          ...objectOf({ field: { type: 'string' }, message: { type: 'string' } }, { code: { type: 'string' } }),
        },
      },
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
  'Retry-After': { type: 'integer', description: 'Seconds to wait before trying again (RFC 9110)' },
} as const
const rateLimit = {
  'RateLimit-Limit': {
    type: 'integer',
    description: 'Requests a minute that the limit allows: the limit of the address, or the limit that refused',
  },
  'RateLimit-Remaining': { type: 'integer', description: 'Requests that are left in this minute' },
  'RateLimit-Reset': { type: 'integer', description: 'Seconds until all requests are available again' },
} as const

/** The response if the answer takes longer than the request is held. */
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

/** The headers of a login, besides Prefer. Any text is valid. */
export const guessingHeaders = {
  'Spillway-Device': {
    type: 'string',
    description:
      'The deviceToken of an earlier login to the account from this device. The device is then counted separately, and its login has priority',
  },
} as const
