/**
 * Tickets: a promise to answer later, sealed, so that any gateway can read it and no one else can make or change one.
 * A ticket is the job's id, a dot, and the sealed rest.
 */
import { type JobRef, type Keyring, SealError } from '@spillway/worker/client'
import { checkFor } from '@spillway/worker/schema'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from './errors.js'
import { Operation } from './operations.js'

const Contents = {
  type: 'object',
  properties: { operation: Operation, jobName: { enum: ['hash', 'verify'] }, deadline: { type: 'integer' } },
  required: ['operation', 'jobName', 'deadline'],
  additionalProperties: false,
} as const
const isContents = checkFor<FromSchema<typeof Contents>>(Contents)

export interface TicketContents {
  operation: Operation
  job: JobRef
}

export interface Tickets {
  issue(ticket: TicketContents): string
  /** Throws `invalid_ticket` for what was not issued here. Whether it has expired is for the caller to see. */
  read(ticket: string): TicketContents
}

export function createTickets(keyring: Keyring): Tickets {
  return {
    issue: ({ operation, job }) =>
      `${job.id}.${keyring.seal({ purpose: 'ticket', id: job.id }, { operation, jobName: job.name, deadline: job.deadline })}`,

    read(ticket) {
      const dot = ticket.indexOf('.')
      const id = ticket.slice(0, Math.max(dot, 0))
      try {
        const contents = keyring.open({ purpose: 'ticket', id }, ticket.slice(dot + 1))
        if (!isContents(contents)) throw new ApiError('invalid_ticket')
        const { operation, jobName, deadline } = contents
        return { operation, job: { id, name: jobName, deadline } }
      } catch (error) {
        if (error instanceof SealError) throw new ApiError('invalid_ticket', { cause: error })
        throw error
      }
    },
  }
}
