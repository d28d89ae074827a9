/** Tickets of an application: sealed promises to answer later. Every process with the seal keys can read them; nobody else can make one. */

import { AWAY_MS } from '@spillway/queue/jobs/ticket'
import type { JobRef } from '@spillway/queue/wire/reply'
import { checkFor } from '@spillway/queue/wire/schema'
import { type Keyring, SealError } from '@spillway/queue/wire/seal'
import type { FromSchema } from 'json-schema-to-ts'
import { PasswordsError } from './passwords-error.js'
import type { WaitingAnswer } from './types.js'

const Contents = {
  type: 'object',
  properties: {
    deadline: { type: 'integer' },
    /** By the wall clock of the process that gave it, in epoch milliseconds. */
    expiresAt: { type: 'integer' },
    server: { type: 'string' },
    subject: { type: 'string' },
    /** A digest of the stored hash. */
    hash: { type: 'string' },
  },
  required: ['deadline', 'expiresAt', 'hash'],
  additionalProperties: false,
} as const
const isContents = /* @__PURE__ */ checkFor<FromSchema<typeof Contents>>(Contents)

export interface ReadTicket {
  job: JobRef
  subject: string | undefined
  expiresAt: number
  /** By storedHashDigest; for an unknown user of an empty text. */
  hash: string
}

export function sealTicket(
  keyring: Keyring,
  { job: { id, deadline, server }, subject, expiresAt, hash }: ReadTicket,
): string {
  return `${id}.${keyring.seal({ purpose: 'application-ticket', id }, { deadline, expiresAt, server, subject, hash })}`
}

/** Throws `invalid_ticket` for what no such process has given, and `ticket_expired`. */
export function readTicket(keyring: Keyring, ticket: string): ReadTicket {
  const [id = '', sealed = ''] = ticket.split(/\.(.*)/s)
  const { expiresAt, deadline, server, subject, hash } = opened(keyring, id, sealed)
  // A writer to Redis may turn back its clock, which ends the job.
  if (Date.now() >= expiresAt) throw new PasswordsError('ticket_expired', 'the ticket has expired')
  return { job: { id, name: 'verify', deadline, server }, subject, expiresAt, hash }
}

function opened(keyring: Keyring, id: string, sealed: string): FromSchema<typeof Contents> {
  try {
    const contents = keyring.open({ purpose: 'application-ticket', id }, sealed)
    if (isContents(contents)) return contents
  } catch (error) {
    if (!(error instanceof SealError)) throw error
  }
  throw new PasswordsError('invalid_ticket', 'the ticket was not given here')
}

/** Times are in milliseconds. A client comes back one hold before its answer, and in any case before it counts as absent. */
export function waitingAnswer(given: {
  ticket: string
  ahead: number | undefined
  etaMs: number
  holdMs: number
}): WaitingAnswer {
  const { ticket, ahead, etaMs, holdMs } = given
  const retryAfter = Math.ceil(Math.min(Math.max(etaMs - holdMs, 1_000), AWAY_MS) / 1_000)
  const answer: WaitingAnswer = { ticket, retryAfter }
  if (ahead !== undefined) answer.position = ahead
  if (Number.isFinite(etaMs)) answer.eta = Math.round(etaMs / 100) / 10
  return answer
}
