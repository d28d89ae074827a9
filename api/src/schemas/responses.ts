/** Bodies and responses that several routes share. Headers of responses are documentation only. */
import { objectOf } from '@spillway/queue/wire/object-schema'
import { ProblemBody } from '../http/problems.js'

export const UserBody = {
  title: 'User',
  description: 'An account',
  ...objectOf({
    id: { type: 'string', format: 'uuid' },
    email: { type: 'string', description: 'The normalized address: in lower case, with its domain in ASCII' },
    createdAt: { type: 'string', format: 'date-time' },
  }),
  examples: [
    { id: '6f1d2b1e-6d0c-4c44-9a6e-0a3f5f3c1b7a', email: 'ada@example.test', createdAt: '2026-01-02T03:04:05.678Z' },
  ],
} as const

const deviceToken = {
  type: 'string',
  description:
    'Replaces the earlier token of the device; absent if SESSION_COOKIE is on. Send it in the header Spillway-Device with the ' +
    'next login to this account: failed logins from other devices then do not delay it. The token does not authenticate.',
} as const

export const DeviceBody = {
  title: 'Device',
  description: 'The password was set, and the device is known',
  ...objectOf({}, { deviceToken }),
} as const

export const TokenBody = {
  title: 'Tokens',
  description: 'A session',
  ...objectOf(
    {
      accessToken: { type: 'string', description: 'A JWT (RFC 7519); /.well-known/jwks.json has its keys' },
      tokenType: { type: 'string', enum: ['Bearer'] },
      expiresIn: { type: 'integer', description: 'Seconds until the access token expires' },
    },
    {
      refreshToken: { type: 'string', description: 'Opaque; valid for one refresh; absent if SESSION_COOKIE is on' },
      deviceToken,
    },
  ),
  examples: [
    {
      accessToken: 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiI2ZjFkIn0.c2lnbmF0dXJl',
      refreshToken: 'bm90IGEgdG9rZW4gb2YgYW55b25l',
      tokenType: 'Bearer',
      expiresIn: 900,
      deviceToken: 'cmFuZG9t.1790000000.c2lnbmF0dXJl',
    },
  ],
} as const

const sessionId = { type: 'string', format: 'uuid' } as const
const ofSession = {
  device: { type: ['string', 'null'], description: 'The User-Agent of the login' },
  address: { type: ['string', 'null'], description: 'The address of the login' },
  createdAt: { type: 'string', format: 'date-time' },
  lastUsedAt: { type: 'string', format: 'date-time', description: 'The time of the login, or of the last refresh' },
  expiresAt: { type: 'string', format: 'date-time', description: 'When the session ends if it is not refreshed' },
} as const

export const SessionBody = {
  title: 'Session',
  description: 'A live session',
  ...objectOf({
    id: sessionId,
    current: { type: 'boolean', description: 'Whether this is the session of the request' },
    ...ofSession,
  }),
} as const

/** A live session for operators. */
export const AccountSessionBody = { title: 'AccountSession', ...objectOf({ id: sessionId, ...ofSession }) } as const

export const SessionsBody = {
  title: 'Sessions',
  ...objectOf({ sessions: { type: 'array', items: SessionBody } }),
} as const

export const TicketBody = {
  title: 'Ticket',
  description: 'Returned if the answer takes longer than the request is held',
  ...objectOf(
    {
      ticket: { type: 'string', description: 'Redeem it once at /v1/tickets/redeem, at any gateway' },
      retryAfter: {
        type: 'integer',
        description: 'Seconds to wait before redeeming the ticket. The redemption is held until the answer is ready',
      },
      number: {
        type: 'integer',
        minimum: 0,
        description: 'The number of the ticket in the line. Its turn comes when /v1/line serves this number',
      },
    },
    {
      position: { type: 'integer', minimum: 0, description: 'Requests ahead of this one in the queue' },
      eta: {
        type: 'number',
        minimum: 0,
        description:
          'Estimated seconds until the answer, with the current workers; absent if there are no workers, or while logins are paused',
      },
      paused: {
        type: 'boolean',
        description: 'Whether operators have paused the line. Nobody gets in until they resume it',
      },
    },
  ),
  examples: [{ ticket: 'made-by-a-gateway.opaque', retryAfter: 4, number: 1_310, position: 310, eta: 11.8 }],
} as const

export const LineBody = {
  title: 'Line',
  description: 'The progress of the line of tickets',
  ...objectOf(
    {
      serving: { type: 'integer', minimum: 0, description: 'The number that is served now' },
      rate: {
        type: 'number',
        minimum: 0,
        description: 'Numbers served per second; 0 if there are no workers, or the line is paused',
      },
      until: { type: 'string', format: 'date-time', description: 'The earliest time to ask again' },
    },
    {
      paused: { type: 'boolean', description: 'Whether operators have paused the line' },
    },
  ),
  examples: [{ serving: 1_000, rate: 26.3, until: '2026-01-02T03:04:05.678Z' }],
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
