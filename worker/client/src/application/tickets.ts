/** Tickets of an application. */
import { PasswordClientError } from '@spillway/queue/errors'
import { type Ticket, Tickets } from '@spillway/queue/wait/tickets'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { checkFor } from '@spillway/queue/wire/schema'
import type { Keyring } from '@spillway/queue/wire/seal'
import type { FromSchema } from 'json-schema-to-ts'
import { PasswordsError } from './passwords-error.js'

const Contents = objectOf(
  {
    /** By storedHashDigest; for an unknown user of an empty text. */
    hash: { type: 'string' },
  },
  { subject: { type: 'string' } },
)
type Contents = FromSchema<typeof Contents>
const isContents = /* @__PURE__ */ checkFor<Contents>(Contents)

export class ApplicationTickets extends Tickets<Contents> {
  constructor(keyring: Keyring) {
    super(keyring, 'application-ticket', isContents)
  }

  /** Throws `invalid_ticket` for what no such process has given, and `ticket_expired`. */
  override read(text: string): Ticket<Contents> {
    try {
      return super.read(text)
    } catch (error) {
      const isOfTicket =
        error instanceof PasswordClientError && (error.code === 'invalid_ticket' || error.code === 'ticket_expired')
      throw isOfTicket ? new PasswordsError(error.code, error.message) : error
    }
  }
}
