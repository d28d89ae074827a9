/**
 * Tickets: sealed promises to answer later, which only processes with the seal keys can read and
 * make. A ticket is the job's id, a dot, and the sealed contents.
 */
import type { FromSchema } from 'json-schema-to-ts'
import { PasswordClientError } from '../errors.js'
import { AWAY_MS } from '../jobs/ticket.js'
import { jobNames } from '../wire/job.js'
import { objectOf } from '../wire/object-schema.js'
import type { JobRef } from '../wire/reply.js'
import { checkFor } from '../wire/schema.js'
import { type Keyring, SealError } from '../wire/seal.js'
import type { Expectation } from './answers.js'

const Sealed = objectOf(
  {
    contents: { type: 'object' },
    jobName: { enum: jobNames },
    deadline: { type: 'integer' },
    expiresAt: { type: 'integer' },
  },
  {
    /** Id of the Redis server that has the job, where there are several. */
    server: { type: 'string', maxLength: 64 },
  },
)
const isSealed = /* @__PURE__ */ checkFor<FromSchema<typeof Sealed>>(Sealed)

/**
 * A ticket is valid until its job's deadline by Redis's clock. Someone with access to Redis may
 * turn that clock back and restore old data, so a ticket is also invalid this long after its expiry
 * by the process's own clock. The tolerance allows clocks to be a minute apart.
 */
const TOLERANCE_MS = 90_000

export interface Ticket<Contents> {
  job: JobRef
  /** Epoch milliseconds by the clock of the process that took the request. Reissuing keeps it. */
  expiresAt: number
  contents: Contents
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

  issue({ job: { id, name, deadline, server }, expiresAt, contents }: Ticket<Contents>): string {
    const sealed = { contents, jobName: name, deadline, expiresAt, server }
    return `${id}.${this.#keyring.seal({ purpose: this.#purpose, id }, sealed)}`
  }

  /** As {@link Tickets.open}. Throws `ticket_expired` for a ticket that {@link isExpired}. */
  read(text: string): Ticket<Contents> {
    const ticket = this.open(text)
    if (isExpired(ticket)) throw new PasswordClientError('ticket_expired', 'the ticket has expired')
    return ticket
  }

  /**
   * Throws `invalid_ticket` for text that was not issued here. The caller checks the expiry, and the
   * deadline by Redis's clock.
   */
  open(text: string): Ticket<Contents> {
    const dot = text.indexOf('.')
    const id = text.slice(0, Math.max(dot, 0))
    const sealed = this.#unseal(id, text.slice(dot + 1))
    if (!isSealed(sealed) || !this.#isContents(sealed.contents)) throw invalid()
    const { contents, jobName, deadline, expiresAt, server } = sealed
    return { job: { id, name: jobName, deadline, ...(server === undefined ? {} : { server }) }, expiresAt, contents }
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

/** Whether a ticket has expired by this machine's clock. */
export function isExpired({ expiresAt }: Pick<Ticket<unknown>, 'expiresAt'>): boolean {
  return Date.now() > expiresAt + TOLERANCE_MS
}

function invalid(cause?: unknown): PasswordClientError {
  return new PasswordClientError('invalid_ticket', 'the ticket was not issued here', { cause })
}

/** Clients must not poll in a busy loop. */
const RETRY_AFTER_MIN_S = 1
/** Workers may join and answer earlier; a client that stays away gives its place up. */
const RETRY_AFTER_MAX_S = AWAY_MS / 1_000
/** Without workers: they may be back in a moment, and a redemption only costs a hold. */
const RETRY_AFTER_UNKNOWN_S = 2

/** What a client is told with a ticket. Times are in seconds. */
export interface Told {
  retryAfter: number
  /** Undefined where Redis did not say. */
  position?: number
  /** Undefined while no worker is alive. */
  eta?: number
}

/**
 * What a client is told with a ticket that has `lifeMs` left and whose redemption will be held for
 * `waitMs`. It comes back one hold before the predicted answer, and before the ticket expires.
 */
export function told(
  { ahead, waitMs: etaMs }: Pick<Expectation, 'ahead' | 'waitMs'>,
  waitMs: number,
  lifeMs: number,
): Told {
  const awayS = Math.ceil((etaMs - waitMs) / 1_000)
  const expectedS = Number.isFinite(awayS) ? Math.min(RETRY_AFTER_MAX_S, awayS) : RETRY_AFTER_UNKNOWN_S
  const lastS = Math.floor(lifeMs / 1_000) - 1
  return {
    retryAfter: Math.max(RETRY_AFTER_MIN_S, Math.min(expectedS, lastS)),
    ...(ahead === undefined ? {} : { position: ahead }),
    ...(Number.isFinite(etaMs) ? { eta: Math.round(etaMs / 100) / 10 } : {}),
  }
}
