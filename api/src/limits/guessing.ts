/**
 * Slows guessing down and locks nobody out. A device that has logged in to an account is counted
 * separately. Unknown devices share the consecutive failures of an account, and wait longer after
 * each failure. A password reset by mail makes its device known. Nothing here checks whether an
 * account exists.
 */
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import type { GatewayConfig } from '../config.js'
import { ApiError, orUnavailable } from '../http/errors.js'
import type { GatewayMetrics } from '../ops/metrics.js'
import type { Attempt, Attempts, Settled } from './attempts.js'
import { accountDigest, accountOfEmail } from './counts.js'
import { type DeviceTokens, deviceTokenOf, generationOf, type KnownDevice } from './device-token.js'
import { sendLimitHeaders } from './limits.js'

interface GuessingOptions {
  config: GatewayConfig
  devices: DeviceTokens
  attempts: Attempts
  metrics: GatewayMetrics
  log: FastifyBaseLogger
}

interface CountedLogin {
  attempt: Attempt
  /** Whether it waits until other attempts of its address prove to be no guesses. */
  isBehind: boolean
}

export class Guessing {
  readonly #options: GuessingOptions

  constructor(options: GuessingOptions) {
    this.#options = options
  }

  /**
   * Counts a login for its address and its account, as a failure until its result is known. Throws
   * `too_many_requests`, or `unavailable` while Redis does not count. Nothing is hashed then.
   *
   * @param email normalized
   */
  async letIn(email: string, request: FastifyRequest, reply: FastifyReply): Promise<LetInAttempt> {
    const { config, devices } = this.#options
    const account = accountDigest(email)
    const known = config.guessesPerAccount === 0 ? null : devices.read(account, deviceTokenOf(request.headers))
    const count = (device: string | null) => this.#count(account, device, request, reply)
    return new LetInAttempt(this, count, known, await count(known?.id ?? null))
  }

  /** Whether a request shows the token of a device that has logged in to its account. */
  showsKnownDevice({ body, headers }: FastifyRequest): boolean {
    const token = deviceTokenOf(headers)
    const email = typeof body === 'object' && body !== null && 'email' in body ? body.email : undefined
    if (token === '' || typeof email !== 'string') return false
    return this.#options.devices.read(accountOfEmail(email), token) !== null
  }

  /** Counts an attempt of a known or an unknown device. Throws if it is refused. */
  async #count(
    account: string,
    device: string | null,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<CountedLogin> {
    const { attempts, config } = this.#options
    /** Requests a minute of an account; 0 means no limit. */
    const { limitPerAccount: perMinute, guessesPerAccount } = config
    const attempt = { ...attempts.newAttempt(request.ip), account, device, failures: 0 }
    if (device === null) attempts.refuseRemembered(attempt, reply)
    if (perMinute === 0 && guessesPerAccount === 0)
      return { attempt, isBehind: await attempts.takeForAddress(attempt, reply) }
    let isBehind: boolean | undefined
    try {
      // A request that the limit of its address refuses does not count for its account.
      // An attempt that Redis does not count gets no hash.
      const { outcome, failures, requests, waitMs } = await orUnavailable(
        device === null
          ? attempts.take(attempt, reply, (itIs) => {
              isBehind = itIs
            })
          : attempts.takeForAccount(attempt),
      )
      if (outcome === 'too_many') sendLimitHeaders(reply, perMinute, { count: requests, resetS: secondsOf(waitMs) })
      if (outcome === 'too_many' || outcome === 'delayed') throw refusalOf(outcome, waitMs)
      // A known device is counted once its token matches the account's current password.
      if (outcome === 'unknown') this.#options.metrics.loginAttempts.inc({ device: 'unknown' })
      // A device that failed too often is treated as unknown; only its failures count for its address.
      const counted = { ...attempt, failures, device: outcome === 'known' ? device : null }
      return { attempt: counted, isBehind: isBehind === true }
    } catch (error) {
      const isRefusal = error instanceof ApiError && error.status < 500
      if (isBehind !== undefined) attempts.endForAddress(attempt, isRefusal)
      throw error
    }
  }

  /** Counts a login of a known device whose token matches the account's current password. */
  countKnown(): void {
    this.#options.metrics.loginAttempts.inc({ device: 'known' })
  }

  /** @param user with the version of the password that was verified or set */
  issueDeviceToken(account: string, user: { userId: string; credentialVersion: number }): string {
    return this.#options.devices.issue(account, generationOf(user))
  }

  /** Whether an attempt that was deferred (behind) may be hashed now. */
  mayStart(attempt: Attempt): Promise<boolean> {
    return this.#options.attempts.mayStart(attempt)
  }

  end(attempt: Attempt, settled: Settled): void {
    this.#options.attempts.end(attempt, settled).catch((error: unknown) => {
      // The count stays too high until the attempt lapses.
      this.#options.log.debug({ err: error }, 'an attempt could not be counted')
    })
  }
}

/** A login that was let in. */
export class LetInAttempt {
  readonly #guessing: Guessing
  readonly #count: (device: null) => Promise<CountedLogin>
  readonly #known: KnownDevice | null
  /** As it was counted last. */
  counted: CountedLogin
  #isTakenBack = false

  constructor(
    guessing: Guessing,
    count: (device: null) => Promise<CountedLogin>,
    known: KnownDevice | null,
    counted: CountedLogin,
  ) {
    this.#guessing = guessing
    this.#count = count
    this.#known = known
    this.counted = counted
  }

  /**
   * Compares the generation of a known device with the generation of the account. It is undefined
   * if there is no account. A device of another generation is counted and refused as an unknown one.
   */
  async confirm(generation: string | undefined): Promise<void> {
    if (this.counted.attempt.device === null) return
    if (this.#known?.generation === generation) return this.#guessing.countKnown()
    this.takeBack()
    this.counted = await this.#count(null)
    this.#isTakenBack = false
  }

  /** For an attempt that taught nobody anything, such as one without a job. Idempotent. */
  takeBack(): void {
    if (!this.#isTakenBack) this.#guessing.end(this.counted.attempt, 'nothing')
    this.#isTakenBack = true
  }
}

function refusalOf(outcome: 'too_many' | 'delayed', waitMs: number): ApiError {
  const reason = outcome === 'delayed' ? 'guesses_delayed' : 'account_limit'
  return new ApiError('too_many_requests', { reason, retryAfterS: secondsOf(waitMs) })
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}
