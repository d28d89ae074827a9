/**
 * Holds guessing back and locks nobody out. A device that has logged in to an account is counted by itself. Unknown devices share a number
 * of consecutive failures for each account (NIST SP 800-63B-4, 3.2.2), with growing delays. Then each attempt needs a challenge. A solved
 * challenge also replaces a delay. Nothing here asks whether an account exists.
 */
import type { FastifyBaseLogger } from 'fastify'
import { storedNetworkOf } from '../client-network.js'
import type { Count } from '../counts.js'
import { ApiError } from '../errors.js'
import type { GatewayMetrics } from '../metrics.js'
import type { AddressAttempts, CountedAttempt, CountedTogether } from './address-attempts.js'
import type { Attempts, LetIn, Settled } from './attempts.js'
import type { Answerer, Challenges, Solved } from './challenges.js'
import type { DeviceTokens, KnownDevice } from './device-token.js'
import type { ProbedNetworks } from './probed-networks.js'
import type { SprayedPasswords } from './sprayed-passwords.js'

/** An attempt that was let in, as tickets carry it. */
export interface Attempt {
  /** Also of what is counted for its network. */
  id: string
  /** The digest of the address. */
  account: string
  /** The device whose count it is; null for the count of unknown devices. */
  device: string | null
  /** Where the login came from: its ticket may be redeemed from elsewhere. */
  network: string
}

/** A login that asks to be let in. */
export interface Login {
  account: string
  deviceToken: string
  challengeAnswer: string
  client: Answerer
  /** Counts an attempt of no known device for the address that it comes from, once. Throws `too_many_requests`. */
  countForAddress(): Promise<CountedAttempt>
  /** The same, counted by the command that counts it for its account; undefined where it has been counted, or one command cannot. */
  countTogether(): CountedTogether | undefined
  /** Called when the limit of a minute refuses. */
  tellLimit(max: number, count: Count): void
}

interface GuessingDeps {
  attempts: Attempts
  addresses: AddressAttempts
  challenges: Challenges
  devices: DeviceTokens
  networks: ProbedNetworks
  sprayed: SprayedPasswords
  /** The name of an account in Redis. */
  nameOf(account: string): string
  /** Requests a minute and failures of unknown devices; 0 for no bound. */
  perMinute: number
  perAccount: number
  metrics: Pick<GatewayMetrics, 'loginAttempts' | 'attacksNoticed'>
  log: FastifyBaseLogger
}

export class Guessing {
  readonly #deps: GuessingDeps
  readonly #isOff: boolean
  /** Whether one command counts a login for its address and for its account. */
  readonly isTogether: boolean

  constructor(deps: GuessingDeps) {
    this.#deps = deps
    this.#isOff = deps.perMinute === 0 && deps.perAccount === 0
    this.isTogether = deps.addresses.isTogether && !this.#isOff
  }

  /**
   * Counts a login before any other work. Throws `too_many_requests` or `challenge_required`, with a challenge. An answer to a challenge is
   * checked only where the login needs it. Throws `unavailable` for an attempt that cannot be counted: while Redis is away nothing is hashed
   * anyway.
   */
  async letIn(login: Login): Promise<LetInAttempt> {
    const { devices, perAccount } = this.#deps
    const known = perAccount === 0 ? null : devices.read(login.account, login.deviceToken)
    return new LetInAttempt(this, login, known, await this.count(login, known?.id ?? null))
  }

  /** Counts an attempt of a device, or of an unknown one. Throws its refusal. */
  async count(login: Login, device: string | null, before?: CountedAttempt): Promise<CountedLogin> {
    const { account, challengeAnswer, client } = login
    const { challenges, perAccount, perMinute, metrics } = this.#deps
    let ofAddress = before
    // A request that the limit of its address refuses does not count for its account.
    const together = device === null && this.isTogether ? login.countTogether() : undefined
    if (device === null && together === undefined) ofAddress = await login.countForAddress()
    const network = storedNetworkOf(client.address)
    if (this.#isOff) return { attempt: { id: ofAddress?.id ?? '', account, device, network }, ofAddress }
    const counted = (answer: unknown) => {
      ofAddress = together?.counted(answer)
    }
    const isAnswered = challengeAnswer !== '' && perAccount > 0
    const id = together?.id ?? ofAddress?.id
    let letIn = await this.#ask(
      account,
      device,
      isAnswered ? 'unchecked' : undefined,
      id,
      together && { ...together, counted },
    )
    let solved: Solved | undefined
    if (letIn.outcome === 'unchecked') {
      solved = await challenges.check(account, challengeAnswer, client)
      letIn = await this.#ask(account, device, solved, ofAddress?.id)
    }
    const { outcome, requests, waitMs } = letIn
    if (outcome === 'too_many' || outcome === 'device_too_many')
      login.tellLimit(perMinute, { count: requests, resetS: secondsOf(waitMs) })
    if (outcome !== 'known' && outcome !== 'unknown' && outcome !== 'solved') throw this.#refusal(account, letIn)
    // Whether the token of a known device is of this account's present password shows later: it is counted then, once.
    if (outcome !== 'known') metrics.loginAttempts.inc({ device: outcome })
    // A device that failed too often is as good as unknown, and only its failures count for its address. A challenge that let nobody in was
    // used before, and must stay used.
    const attempt = { id: letIn.id, account, device: outcome === 'known' ? device : null, network }
    return { attempt, ofAddress, challengeId: outcome === 'solved' ? solved?.id : undefined }
  }

  /** Counts a login of a known device whose token is of the account's present password. */
  countKnown(): void {
    this.#deps.metrics.loginAttempts.inc({ device: 'known' })
  }

  /**
   * The token of the device from now on.
   *
   * @param generation of the account whose password was verified
   */
  issueDeviceToken({ account }: Attempt, generation: string): string {
    return this.#deps.devices.issue(account, generation)
  }

  /** Whether the job of a ticket may be hashed by now. */
  async mayBeHashed({ id, network, device }: Attempt): Promise<boolean> {
    return device !== null || (await this.#deps.addresses.mayBeHashed({ id, network }))
  }

  /** After a right password. */
  succeeded(attempt: Attempt): void {
    this.#settle(attempt, 'succeeded')
  }

  /** After an end that says nothing of the password. */
  unanswered(attempt: Attempt, challengeId?: string): void {
    this.#settle(attempt, 'nothing', challengeId)
  }

  /**
   * When the ticket of an attempt stays pending without an answer. Its address no longer counts it: {@link mayBeHashed} does, when its
   * client comes again. Its account does: it may still be hashed.
   */
  setAside({ id, network, device }: Attempt): void {
    if (device === null) this.#deps.addresses.end({ id, network }, false)
  }

  /** After a wrong password, or one for no account. */
  failed(attempt: Attempt): void {
    const { networks, nameOf, metrics, log } = this.#deps
    const { account, device, network: from } = attempt
    this.#settle(attempt, 'failed')
    if (this.#isOff || device !== null) return
    const counted = networks.failed(nameOf(account), from).then((noticed) => {
      for (const network of noticed) {
        metrics.attacksNoticed.inc({ kind: 'network' })
        log.warn({ network }, 'many accounts are tried in vain from one network')
      }
    })
    this.#inBackground(counted)
  }

  /** The password of a failure that was answered while its request was held. */
  failedBy(password: string, { account, device }: Attempt): void {
    const { sprayed, metrics, log } = this.#deps
    if (this.#isOff || device !== null || !sprayed.failed(password, account)) return
    metrics.attacksNoticed.inc({ kind: 'password' })
    log.warn('one password is tried in vain on many accounts')
  }

  async #ask(account: string, ...counted: Tail<Parameters<Attempts['letIn']>>): Promise<LetIn> {
    const { attempts, nameOf } = this.#deps
    try {
      return await attempts.letIn(nameOf(account), ...counted)
    } catch (error) {
      if (error instanceof ApiError) throw error
      throw new ApiError('unavailable', { cause: error, retryAfterS: 1 })
    }
  }

  #refusal(account: string, { outcome, failures, waitMs }: LetIn): ApiError {
    const { challenges, perAccount } = this.#deps
    const isChallenged = perAccount > 0 && outcome !== 'device_too_many'
    const challenge = isChallenged ? { challenge: challenges.issue(account, failures - perAccount) } : {}
    if (outcome === 'challenge')
      return new ApiError('challenge_required', { reason: 'guesses_challenged', ...challenge })
    const reason = outcome === 'delayed' ? 'guesses_delayed' : 'account_limit'
    return new ApiError('too_many_requests', { reason, retryAfterS: secondsOf(waitMs), ...challenge })
  }

  #settle({ id, account, device, network }: Attempt, settled: Settled, challengeId?: string): void {
    const { addresses, attempts, nameOf, perAccount } = this.#deps
    const ofAddress = { id, network }
    const hasFailed = settled === 'failed'
    const isTogether = device === null && addresses.isTogether && perAccount > 0
    if (device === null && !isTogether) addresses.end(ofAddress, hasFailed)
    if (perAccount === 0) return
    const together = isTogether ? addresses.endTogether(ofAddress, hasFailed) : undefined
    this.#inBackground(attempts.settle({ id, account: nameOf(account), device }, settled, challengeId, together))
  }

  /** Logs the failure of a Redis command that no answer awaits. A lost command leaves a count too high. */
  #inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#deps.log.debug({ err: error }, 'an attempt could not be counted'))
  }
}

type Tail<All extends unknown[]> = All extends [unknown, ...infer Rest] ? Rest : never

interface CountedLogin {
  attempt: Attempt
  /** Undefined for a known device. */
  ofAddress: CountedAttempt | undefined
  /** Of the challenge by which it was let in. */
  challengeId?: string | undefined
}

/** A login that was let in. */
export class LetInAttempt {
  readonly #guessing: Guessing
  readonly #login: Login
  readonly #known: KnownDevice | null
  #counted: CountedLogin
  #isTakenBack = false

  constructor(guessing: Guessing, login: Login, known: KnownDevice | null, counted: CountedLogin) {
    this.#guessing = guessing
    this.#login = login
    this.#known = known
    this.#counted = counted
  }

  get attempt(): Attempt {
    return this.#counted.attempt
  }

  /** Whether it waits until others of its address are known to be no guesses. */
  get isBehind(): boolean {
    return this.#counted.ofAddress?.isBehind === true
  }

  /**
   * Compares the generation of a known device with the account's, undefined where there is no account. A device of another generation is
   * unknown: it is counted as such, and refused as such.
   */
  async confirm(generation: string | undefined): Promise<void> {
    if (this.attempt.device === null) return
    if (this.#known?.generation === generation) return this.#guessing.countKnown()
    this.takeBack()
    this.#counted = await this.#guessing.count(this.#login, null, this.#counted.ofAddress)
    this.#isTakenBack = false
  }

  /** Where nobody learned anything: no job was added, it was cancelled in time, or the gateway failed. Further calls do nothing. */
  takeBack(): void {
    if (!this.#isTakenBack) this.#guessing.unanswered(this.attempt, this.#counted.challengeId)
    this.#isTakenBack = true
  }
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}
