/**
 * Tickets: sealed promises to answer later. Every gateway can read them; nobody else can create or change one. A ticket is the job's id,
 * a dot, and the sealed contents.
 */

import { type JobRef, type Keyring, SealError } from '@spillway/queue/queue-client'
import { jobNames } from '@spillway/queue/wire/job'
import { checkFor } from '@spillway/queue/wire/schema'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from '../problems/errors.js'

/** The longest possible ticket is a registration's, which contains an address; other tickets contain nothing that clients choose. */
export const TICKET_MAX_LENGTH = 2_048

const Contents = {
  type: 'object',
  properties: {
    /** The kind of operation, and its contents. */
    operation: { type: 'object', properties: { kind: { type: 'string' } }, required: ['kind'] },
    jobName: { enum: jobNames },
    deadline: { type: 'integer' },
    expiresAt: { type: 'integer' },
    /** The id of the Redis server that has the job, where there are several. Gateways of one Redis server seal no id. */
    server: { type: 'string', maxLength: 64 },
  },
  required: ['operation', 'jobName', 'deadline', 'expiresAt'],
  additionalProperties: false,
} as const
const isContents = checkFor<FromSchema<typeof Contents>>(Contents)

/**
 * A ticket is valid until its job's deadline by Redis's clock. Someone with access to Redis may turn that clock back and restore old
 * data, so a ticket is also invalid this long after its expiry by the gateway's own clock. The tolerance allows clocks of gateways to be
 * a minute apart.
 */
const TICKET_TOLERANCE_MS = 90_000

export interface TicketContents {
  operation: { kind: string; [name: string]: unknown }
  job: JobRef
  /** Epoch milliseconds by the wall clock of the gateway that received the request. A reissued ticket keeps it. */
  expiresAt: number
}

/** Seals and reads tickets. */
export class Tickets {
  readonly #keyring: Keyring

  constructor(keyring: Keyring) {
    this.#keyring = keyring
  }

  issue({ operation, job: { id, name, deadline, server }, expiresAt }: TicketContents): string {
    const contents = { operation, jobName: name, deadline, expiresAt, server }
    return `${id}.${this.#keyring.seal({ purpose: 'ticket', id }, contents)}`
  }

  /**
   * Throws `invalid_ticket` for text that was not issued by this service, and `ticket_expired` after the expiry by this machine's clock.
   * The caller checks the deadline by Redis's clock.
   */
  read(ticket: string): TicketContents {
    const dot = ticket.indexOf('.')
    const id = ticket.slice(0, Math.max(dot, 0))
    const { operation, jobName, deadline, expiresAt, server } = this.#open(id, ticket.slice(dot + 1))
    if (Date.now() > expiresAt + TICKET_TOLERANCE_MS) throw new ApiError('ticket_expired')
    return { operation, job: { id, name: jobName, deadline, ...(server === undefined ? {} : { server }) }, expiresAt }
  }

  #open(id: string, sealed: string): FromSchema<typeof Contents> {
    try {
      const contents = this.#keyring.open({ purpose: 'ticket', id }, sealed)
      if (isContents(contents)) return contents
    } catch (error) {
      if (error instanceof SealError) throw new ApiError('invalid_ticket', { cause: error })
      throw error
    }
    throw new ApiError('invalid_ticket')
  }
}
