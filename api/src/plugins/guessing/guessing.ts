/**
 * Holds guessing back and locks nobody out. A device that has logged in to an account is counted by
 * itself. Unknown devices share the consecutive failures of an account (NIST SP 800-63B-4, 3.2.2),
 * with growing delays; then each attempt needs a challenge, which also replaces a delay. Nothing
 * here asks whether an account exists.
 */
import type { Keyring } from '@spillway/queue/queue-client'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import type { GatewayConfig } from '../../config.js'
import { accountNameOf, accountOfEmail } from '../counts.js'
import { ApiError, orUnavailable } from '../errors.js'
import { sendLimitHeaders } from '../limits.js'
import type { GatewayMetrics } from '../metrics.js'
import type { ProbedNetworks, SprayedPasswords } from './attacks.js'
import type { Attempt, Attempts, LetIn, Settled } from './attempts.js'
import type { Challenges, Solved } from './challenges.js'
import { type DeviceTokens, deviceTokenOf, type KnownDevice } from './device-token.js'

interface GuessingOptions {
  config: GatewayConfig
  attempts: Attempts
  challenges: Challenges
  devices: DeviceTokens
  networks: ProbedNetworks
  sprayed: SprayedPasswords
  keyring: Keyring
  metrics: Pick<GatewayMetrics, 'loginAttempts' | 'attacksNoticed'>
  log: FastifyBaseLogger
}

interface CountedLogin {
  attempt: Attempt
  isBehind: boolean
  /** The challenge by which it was let in. */
  challengeId?: string | undefined
}

export class Guessing {
  readonly #options: GuessingOptions
  /** Requests a minute and failures of unknown devices; 0 for no bound. */
  readonly #perMinute: number
  readonly #perAccount: number
  readonly #isOff: boolean

  constructor(options: GuessingOptions) {
    this.#options = options
    this.#perMinute = options.config.LIMIT_PER_ACCOUNT
    this.#perAccount = options.config.GUESSES_PER_ACCOUNT
    this.#isOff = this.#perMinute === 0 && this.#perAccount === 0
  }

  /**
   * Counts a valid login before admission. Throws `too_many_requests` or `challenge_required`, with
   * a challenge; `unavailable` while Redis does not count: nothing is hashed then. An answer to a
   * challenge is checked only where the login needs it.
   */
  async letIn(request: FastifyRequest, reply: FastifyReply): Promise<LetInAttempt> {
    const account = accountOfEmail(fieldOf(request, 'email'))
    const known = this.#perAccount === 0 ? null : this.#options.devices.read(account, deviceTokenOf(request.headers))
    const count = (device: string | null) => this.#count(account, device, request, reply)
    return new LetInAttempt(this, count, known, await count(known?.id ?? null))
  }

  /** Counts an attempt of a device, or of an unknown one. Throws its refusal. */
  async #count(
    account: string,
    device: string | null,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<CountedLogin> {
    const { attempts, challenges, metrics } = this.#options
    const { ip, headers } = request
    const attempt = { ...attempts.newAttempt(ip), account, device, failures: 0 }
    request.isUncounted = false
    if (device === null) attempts.refuseRemembered(ip, reply)
    if (this.#isOff) return { attempt, isBehind: await attempts.takeForAddress(attempt, reply) }
    const answer = this.#perAccount === 0 ? '' : String(headers['spillway-challenge'] ?? '')
    const unchecked = answer === '' ? 'none' : 'unchecked'
    let isBehind: boolean | undefined
    try {
      // A request that the limit of its address refuses does not count for its account.
      // An attempt that Redis does not count gets no hash.
      let letIn = await orUnavailable(
        device === null
          ? attempts.take(attempt, unchecked, reply, (itIs) => {
              isBehind = itIs
            })
          : attempts.takeForAccount(attempt, unchecked),
      )
      let solved: Solved | undefined
      if (letIn.outcome === 'unchecked') {
        solved = await challenges.check(account, answer, request)
        letIn = await orUnavailable(attempts.takeForAccount(attempt, solved ?? 'none'))
      }
      const { outcome, failures, requests, waitMs } = letIn
      if (outcome === 'too_many' || outcome === 'device_too_many')
        sendLimitHeaders(reply, this.#perMinute, { count: requests, resetS: secondsOf(waitMs) })
      if (outcome !== 'known' && outcome !== 'unknown' && outcome !== 'solved') throw this.#refusal(account, letIn)
      // A known device is counted once its token is known to be of the account's present password.
      if (outcome !== 'known') metrics.loginAttempts.inc({ device: outcome })
      // A device that failed too often is as good as unknown, and only its failures count for its
      // address. A challenge that let nobody in was used before, and must stay used.
      return {
        attempt: { ...attempt, failures, device: outcome === 'known' ? device : null },
        isBehind: isBehind === true,
        challengeId: outcome === 'solved' ? solved?.id : undefined,
      }
    } catch (error) {
      const isRefusal = error instanceof ApiError && error.status < 500
      if (isBehind !== undefined) attempts.endForAddress(attempt, isRefusal)
      throw error
    }
  }

  /** Counts a login of a known device whose token is of the account's present password. */
  countKnown(): void {
    this.#options.metrics.loginAttempts.inc({ device: 'known' })
  }

  /** @param generation of the account whose password was verified */
  issueDeviceToken({ account }: Attempt, generation: string): string {
    return this.#options.devices.issue(account, generation)
  }

  mayBeHashed(attempt: Attempt): Promise<boolean> {
    return this.#options.attempts.mayBeHashed(attempt)
  }

  end(attempt: Attempt, settled: Settled, challengeId?: string): void {
    this.#inBackground(this.#options.attempts.end(attempt, settled, challengeId))
  }

  /**
   * When the ticket of an attempt stays pending without an answer. Its address counts it again in
   * {@link mayBeHashed}, when its client comes again. Its account does all the time.
   */
  setAside(attempt: Attempt): void {
    if (attempt.device === null) this.#options.attempts.endForAddress(attempt, false)
  }

  /** After a wrong password, or one for no account. */
  failed(attempt: Attempt): void {
    const { networks, keyring, metrics, log } = this.#options
    const { account, device, network: from } = attempt
    this.end(attempt, 'failed')
    if (this.#isOff || device !== null) return
    const counted = networks.failed(accountNameOf(account, keyring), from).then((noticed) => {
      for (const network of noticed) {
        metrics.attacksNoticed.inc({ kind: 'network' })
        log.warn({ network }, 'many accounts are tried in vain from one network')
      }
    })
    this.#inBackground(counted)
  }

  /** After a wrong password that was answered while its request was held. */
  failedHeld(request: FastifyRequest, { account, device }: Attempt): void {
    const { sprayed, metrics, log } = this.#options
    if (this.#isOff || device !== null || !sprayed.failed(fieldOf(request, 'password'), account)) return
    metrics.attacksNoticed.inc({ kind: 'password' })
    log.warn('one password is tried in vain on many accounts')
  }

  #refusal(account: string, { outcome, failures, waitMs }: LetIn): ApiError {
    const isChallenged = this.#perAccount > 0 && outcome !== 'device_too_many'
    const challenge = isChallenged
      ? { challenge: this.#options.challenges.issue(account, failures - this.#perAccount) }
      : {}
    if (outcome === 'challenge')
      return new ApiError('challenge_required', { reason: 'guesses_challenged', ...challenge })
    const reason = outcome === 'delayed' ? 'guesses_delayed' : 'account_limit'
    return new ApiError('too_many_requests', { reason, retryAfterS: secondsOf(waitMs), ...challenge })
  }

  /** Logs a failed Redis command that no answer awaits: a count stays too high. */
  #inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#options.log.debug({ err: error }, 'an attempt could not be counted'))
  }
}

/** A login that was let in. */
export class LetInAttempt {
  readonly #guessing: Guessing
  readonly #count: (device: null) => Promise<CountedLogin>
  readonly #known: KnownDevice | null
  #counted: CountedLogin
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
    this.#counted = counted
  }

  get attempt(): Attempt {
    return this.#counted.attempt
  }

  /** Whether it waits until others of its address are known to be no guesses. */
  get isBehind(): boolean {
    return this.#counted.isBehind
  }

  /**
   * Compares the generation of a known device with the account's, undefined where there is no
   * account. A device of another generation is unknown: it is counted and refused as such.
   */
  async confirm(generation: string | undefined): Promise<void> {
    if (this.attempt.device === null) return
    if (this.#known?.generation === generation) return this.#guessing.countKnown()
    this.takeBack()
    this.#counted = await this.#count(null)
    this.#isTakenBack = false
  }

  /** Where nobody learned anything, for instance without a job. Further calls do nothing. */
  takeBack(): void {
    if (!this.#isTakenBack) this.#guessing.end(this.attempt, 'nothing', this.#counted.challengeId)
    this.#isTakenBack = true
  }
}

/** A field of a body that was validated. */
function fieldOf({ body }: FastifyRequest, name: string): string {
  const field = typeof body === 'object' && body !== null ? Object.getOwnPropertyDescriptor(body, name)?.value : ''
  return typeof field === 'string' ? field : ''
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}
