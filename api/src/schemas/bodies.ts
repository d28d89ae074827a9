/** Response bodies that several routes share. */

import { objectOf } from '@spillway/queue/wire/object-schema'

export const UserBody = {
  title: 'User',
  description: 'An account',
  ...objectOf({
    id: { type: 'string', format: 'uuid' },
    email: { type: 'string', description: 'The one form of the address: lower case, its domain in ASCII' },
    createdAt: { type: 'string', format: 'date-time' },
  }),
  examples: [
    { id: '6f1d2b1e-6d0c-4c44-9a6e-0a3f5f3c1b7a', email: 'ada@example.test', createdAt: '2026-01-02T03:04:05.678Z' },
  ],
} as const

export const TokenBody = {
  title: 'Tokens',
  description: 'A session',
  ...objectOf(
    {
      accessToken: { type: 'string', description: 'JWT (RFC 7519); verify it by /.well-known/jwks.json' },
      tokenType: { const: 'Bearer' },
      expiresIn: { type: 'integer', description: 'Seconds until the access token expires' },
    },
    {
      refreshToken: { type: 'string', description: 'Opaque; good for one refresh; absent where SESSION_COOKIE is on' },
      deviceToken: {
        type: 'string',
        description:
          'Of a login: it replaces the earlier one on the device. Send it with the next login to this account in the header ' +
          'Spillway-Device; failures of others then do not count. It opens nothing by itself.',
      },
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

export const SessionBody = {
  title: 'Session',
  description: 'A live session',
  ...objectOf({
    id: { type: 'string', format: 'uuid' },
    current: { type: 'boolean', description: 'Whether it is the session of this request' },
    device: { type: ['string', 'null'], description: 'The User-Agent of its login' },
    address: { type: ['string', 'null'], description: 'The address of its login' },
    createdAt: { type: 'string', format: 'date-time' },
    lastUsedAt: { type: 'string', format: 'date-time', description: 'Its login, or its last refresh' },
    expiresAt: { type: 'string', format: 'date-time', description: 'When it ends unless it is refreshed before' },
  }),
} as const

export const SessionsBody = {
  title: 'Sessions',
  ...objectOf({ sessions: { type: 'array', items: SessionBody } }),
} as const

export const TicketBody = {
  title: 'Ticket',
  description: 'Instead of an answer that takes longer than the request is held',
  ...objectOf(
    {
      ticket: { type: 'string', description: 'Redeem it at /v1/tickets/redeem, at any gateway, once' },
      retryAfter: {
        type: 'integer',
        description: 'Seconds after which to redeem it; the request is held until the answer',
      },
      number: {
        type: 'integer',
        minimum: 0,
        description: 'Its place in line, counted from the start: its turn comes when /v1/line serves it',
      },
      line: { type: 'string', description: 'The line that it is in, as /v1/line names it' },
    },
    {
      position: { type: 'integer', minimum: 0, description: 'Requests that are ahead in the queue' },
      eta: {
        type: 'number',
        minimum: 0,
        description:
          'Seconds until the answer is expected, by the workers of the moment; absent without workers, and while logins are paused',
      },
      paused: {
        type: 'boolean',
        description: 'Whether operators have paused the line: nobody gets in until they resume it',
      },
    },
  ),
  examples: [
    { ticket: 'made-by-a-gateway.opaque', retryAfter: 4, number: 1_310, line: 'Zk3u_p0a', position: 310, eta: 11.8 },
  ],
} as const

export const LineBody = {
  title: 'Line',
  description: 'How far the line of those who hold tickets has come, on each Redis server',
  ...objectOf(
    {
      serving: {
        type: 'object',
        additionalProperties: { type: 'integer', minimum: 0 },
        description: 'The number whose turn it is, by line',
      },
      rate: {
        type: 'object',
        additionalProperties: { type: 'number', minimum: 0 },
        description: 'Numbers a second, by line; 0 while there are no workers, or the line is paused',
      },
      until: { type: 'string', format: 'date-time', description: 'When to ask again at the earliest' },
    },
    {
      paused: {
        type: 'array',
        items: { type: 'string' },
        description: 'The lines that operators have paused; absent while no line is',
      },
    },
  ),
  examples: [{ serving: { Zk3u_p0a: 1_000 }, rate: { Zk3u_p0a: 26.3 }, until: '2026-01-02T03:04:05.678Z' }],
} as const
