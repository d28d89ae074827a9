/**
 * Tickets: a promise to answer later, sealed, so that any gateway can read it and no one else can make or change one.
 * A ticket is the job's id, a dot, and the sealed rest.
 */
import { type JobRef, type Keyring, SealError } from '@spillway/client'
import { checkFor } from '@spillway/client/protocol/schema'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from '../problems/errors.js'

/** No ticket is longer: a registration's holds an address (credentials.ts), the others hold nothing that clients choose. */
export const TICKET_MAX_LENGTH = 2_048

const Contents = {
  type: 'object',
  properties: {
    /** Its kind, and what that kind of operation put there. */
    operation: { type: 'object', properties: { kind: { type: 'string' } }, required: ['kind'] },
    jobName: { enum: ['hash', 'verify'] },
    deadline: { type: 'integer' },
    expiresAt: { type: 'integer' },
  },
  required: ['operation', 'jobName', 'deadline'],
  additionalProperties: false,
} as const
const isContents = checkFor<FromSchema<typeof Contents>>(Contents)

/**
 * A ticket is good until its job's deadline, by Redis's clock, which all share; and because that clock may be turned back, and what
 * it kept be put there again, no longer than this after its expiry by the clock of the gateway that reads it. Clocks of gateways may
 * be a minute apart.
 */
const CLOCKS_APART_MS = 90_000

export interface TicketContents {
  operation: { kind: string; [name: string]: unknown }
  job: JobRef
  /** Epoch milliseconds by the wall clock of the gateway that took the request. A ticket given anew keeps it. */
  expiresAt: number
}

export interface Tickets {
  issue(ticket: TicketContents): string
  /**
   * Throws `invalid_ticket` for what was not issued here, and `ticket_expired` for what is over by this machine's clock. Whether it is
   * by Redis's is for the caller to see.
   */
  read(ticket: string): TicketContents
}

export function createTickets(keyring: Keyring): Tickets {
  return {
    issue({ operation, job: { id, name, deadline }, expiresAt }) {
      return `${id}.${keyring.seal({ purpose: 'ticket', id }, { operation, jobName: name, deadline, expiresAt })}`
    },

    read(ticket) {
      const dot = ticket.indexOf('.')
      const id = ticket.slice(0, Math.max(dot, 0))
      try {
        const contents = keyring.open({ purpose: 'ticket', id }, ticket.slice(dot + 1))
        if (!isContents(contents)) throw new ApiError('invalid_ticket')
        // Gateways of an earlier version seal no expiry: Redis's clock, as it was then, has to do.
        const { operation, jobName, deadline, expiresAt = deadline } = contents
        if (Date.now() > expiresAt + CLOCKS_APART_MS) throw new ApiError('ticket_expired')
        return { operation, job: { id, name: jobName, deadline }, expiresAt }
      } catch (error) {
        if (error instanceof SealError) throw new ApiError('invalid_ticket', { cause: error })
        throw error
      }
    },
  }
}
