/**
 * Answers that several calls have in common, as the description of the API has them: tickets and problems. The headers are for
 * that alone; nothing is checked or added by them when an answer is sent.
 */

import { TicketBody } from './bodies.js'
import { errorCodes } from './problem-codes.js'

export const ProblemBody = {
  title: 'Problem',
  description: 'Why a request was not answered as it asked (RFC 9457)',
  type: 'object',
  properties: {
    type: { const: 'about:blank' },
    title: { type: 'string' },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    code: { type: 'string', enum: errorCodes },
    errors: {
      type: 'array',
      items: {
        title: 'FieldError',
        type: 'object',
        properties: { field: { type: 'string' }, message: { type: 'string' }, code: { type: 'string' } },
        required: ['field', 'message'],
        additionalProperties: false,
      },
    },
  },
  required: ['type', 'title', 'status', 'code'],
  additionalProperties: false,
  examples: [
    {
      type: 'about:blank',
      title: 'The request is not valid',
      status: 422,
      code: 'invalid_request',
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
    description: 'Requests a minute, by the limit of the address, or by that which refuses',
  },
  'RateLimit-Remaining': { type: 'integer', description: 'How many of them are left' },
  'RateLimit-Reset': { type: 'integer', description: 'Seconds until all of them are left again' },
} as const

/** Instead of an answer that takes longer than the request is held. */
export const ticketResponse = {
  ...TicketBody,
  headers: {
    ...retryAfter,
    'Preference-Applied': { type: 'string', description: 'What was taken into account of Prefer (RFC 7240)' },
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

/** What any call may be answered with, and any call with a body. */
export const anyProblem = { 500: problemResponse, 503: { ...problemResponse, headers: retryAfter } }
export const bodyProblems = {
  400: problemResponse,
  413: problemResponse,
  415: problemResponse,
  422: problemResponse,
  ...anyProblem,
}
