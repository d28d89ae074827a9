/**
 * Tickets: sealed requests. Only processes with the seal keys can read and make them. Each of these
 * can start the request again, so nothing is stored about a client that is away. A ticket is the id
 * of its first job, a dot, and the sealed rest.
 */
import type { FromSchema } from 'json-schema-to-ts'
import { PasswordClientError } from './errors.js'
import { AWAY_MAX_MS, awayMs } from './order.js'
import { objectOf } from './wire/object-schema.js'
import type { JobRef } from './wire/reply.js'
import { checkFor } from './wire/schema.js'
import { type Keyring, SealError } from './wire/seal.js'

const Sealed = objectOf(
  {
    contents: { type: 'object' },
    name: { enum: ['hash', 'verify'] },
    attempt: { type: 'integer', minimum: 0 },
    deadline: { type: 'integer' },
    expiresAt: { type: 'integer' },
  },
  { number: { type: 'integer', minimum: 0 } },
)
const isSealed = /* @__PURE__ */ checkFor<FromSchema<typeof Sealed>>(Sealed)

/**
 * Tickets contain passwords. The padding to this size hides the length of a password of up to about
 * 1,500 characters.
 */
const PADDED_BYTES = 2_048

/**
 * A ticket is valid until its deadline by Redis's clock. Someone with access to Redis may turn that
 * clock back and restore old data, so a ticket is also invalid this long after its expiry by the
 * process's own clock. The tolerance allows clocks to be a minute apart.
 */
const TOLERANCE_MS = 90_000

export interface Ticket<Contents> {
  /** The id of the first job; marks of used tickets, accounts and sessions have the same id. */
  id: string
  name: JobRef['name']
  /** How often the request was started: 0 for a request that has no job yet. */
  attempt: number
  /** Its place in line; undefined for a request that was never ticketed. */
  number?: number | undefined
  /** When the ticket ends, in epoch milliseconds by Redis's clock. All of its jobs end then. */
  deadline: number
  /** The same time by the clock of the process that took the first request. */
  expiresAt: number
  contents: Contents
}

/** The job of an attempt. Its id follows from the ticket: two redemptions start one job. */
export function jobOfTicket({ id, name, deadline }: Ticket<unknown>, attempt: number): JobRef {
  return { id: attempt <= 1 ? id : `${id}.${attempt}`, name, deadline }
}

export class Tickets<Contents extends object> {
  readonly #keyring: Keyring
  readonly #purpose: 'ticket' | 'application-ticket'
  readonly #isContents: (contents: unknown) => contents is Contents

  constructor(
    keyring: Keyring,
    purpose: 'ticket' | 'application-ticket',
    isContents: (contents: unknown) => contents is Contents,
  ) {
    this.#keyring = keyring
    this.#purpose = purpose
    this.#isContents = isContents
  }

  issue({ id, ...rest }: Ticket<Contents>): string {
    return `${id}.${this.#keyring.seal({ purpose: this.#purpose, id }, rest, PADDED_BYTES)}`
  }

  /**
   * Throws `invalid_ticket` for a text that was not issued here, and `ticket_expired` by this
   * machine's clock. The caller checks the deadline by Redis's clock.
   */
  open(text: string): Ticket<Contents> {
    const dot = text.indexOf('.')
    const id = text.slice(0, Math.max(dot, 0))
    const sealed = this.#unseal(id, text.slice(dot + 1))
    if (!isSealed(sealed) || !this.#isContents(sealed.contents)) throw invalid()
    if (Date.now() > sealed.expiresAt + TOLERANCE_MS)
      throw new PasswordClientError('ticket_expired', 'the ticket has expired')
    return { ...sealed, id, contents: sealed.contents }
  }

  #unseal(id: string, sealed: string): unknown {
    try {
      return this.#keyring.open({ purpose: this.#purpose, id }, sealed)
    } catch (error) {
      if (error instanceof SealError) throw invalid(error)
      throw error
    }
  }
}

function invalid(cause?: unknown): PasswordClientError {
  return new PasswordClientError('invalid_ticket', 'the ticket was not issued here', { cause })
}

/** The times that a client gets with a ticket, in seconds. */
export interface TicketTimes {
  retryAfter: number
  /** Absent while no worker is alive, and while the queue is paused. */
  eta?: number
}

/**
 * When to come back with a ticket.
 *
 * @param etaMs milliseconds until the result is expected
 * @param lifeMs milliseconds until the ticket ends
 */
export function ticketTimes(etaMs: number, lifeMs: number): TicketTimes {
  const lastMs = Math.max(1_000, Math.min(AWAY_MAX_MS, lifeMs - 1_000))
  const retryAfter = Math.floor(Math.min(awayMs(etaMs), lastMs) / 1_000)
  return { retryAfter, ...(Number.isFinite(etaMs) ? { eta: Math.round(etaMs / 100) / 10 } : {}) }
}
