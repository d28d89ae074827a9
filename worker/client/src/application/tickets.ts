/** Tickets of an application. */
import { PasswordClientError } from '@spillway/queue/errors'
import { type Ticket, Tickets } from '@spillway/queue/tickets'
import { isVerifyRequest, type Requests } from '@spillway/queue/wire/job'
import type { Keyring } from '@spillway/queue/wire/seal'
import { PasswordsError } from './passwords-error.js'

/** The contents with which the request is started again. */
interface Contents {
  request: Requests['verify']
  subject?: string | undefined
}

export type ApplicationTicket = Ticket<Contents>

function isContents(contents: unknown): contents is Contents {
  const { request, subject } = Object(contents)
  return isVerifyRequest(request) && (subject === undefined || typeof subject === 'string')
}

export class ApplicationTickets extends Tickets<Contents> {
  constructor(keyring: Keyring) {
    super(keyring, 'application-ticket', isContents)
  }

  /** Throws `invalid_ticket` for a text not issued with these keys, and `ticket_expired`. */
  override open(text: string): ApplicationTicket {
    try {
      return super.open(text)
    } catch (error) {
      const isOfTicket =
        error instanceof PasswordClientError && (error.code === 'invalid_ticket' || error.code === 'ticket_expired')
      throw isOfTicket ? new PasswordsError(error.code, error.message) : error
    }
  }
}
