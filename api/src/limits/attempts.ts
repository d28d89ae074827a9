/**
 * Counts attempts at passwords in Redis, for all gateways together. Until its result is known, an
 * attempt counts as a failure: concurrent wrong passwords get no more hashes than consecutive ones.
 * An attempt lapses without its job, its client or its gateway.
 *
 * For an address, the failures of unknown devices within a minute count. An attempt beyond its
 * limit is deferred (*behind*): it gets a ticket without a job. A redemption starts it once the
 * address has room (mayStart).
 *
 * For an account, the consecutive failures of all unknown devices count together. Each failure
 * delays the next attempt of an unknown device longer. Each known device is counted separately.
 */

import { randomBytes } from 'node:crypto'
import type { Keyring } from '@spillway/queue/client'
import { presentMs } from '@spillway/queue/order'
import { defineScript, type Script } from '@spillway/queue/redis/script'
import type { FastifyReply } from 'fastify'
import type { GatewayConfig } from '../config.js'
import { storedNetworkOf } from '../http/client-network.js'
import { ApiError, orUnavailable } from '../http/errors.js'
import {
  accountDigest,
  accountNameOf,
  accountNamesOf,
  accountOfEmail,
  type Count,
  type CountingRedis,
  counted as countedBy,
} from './counts.js'
import { Refusals, sendLimitHeaders } from './limits.js'

/** How long a failure counts for its address. */
const WINDOW_MS = 60_000
/**
 * How many attempts of an address may wait behind others at once, for each failure that it may have
 * in a window. By default a ticket lives for five windows: the first, and four more.
 */
const BEHIND_FOR_EACH = 4
/** The Retry-After when no more attempts may wait behind. */
const BEHIND_RETRY_AFTER_S = 5
const HOUR_MS = 3_600_000
/**
 * How long one, two, three and more failures of an account are remembered. Anyone can fail on any
 * address, so a single failure must not stay in Redis for long.
 */
const MEMORY_MS = [6 * HOUR_MS, 24 * HOUR_MS, 96 * HOUR_MS, 720 * HOUR_MS]
/** The longest time from an attempt that is let in until its job is added, in milliseconds. */
const UNTIL_ADDED_MS = 10_000
const ID_BYTES = 9

const scripts = new URL('./scripts/', import.meta.url)
const takeAttempt = defineScript<AttemptReply>('takeAttempt-9', scripts)
const endAttempt = defineScript<number>('endAttempt-9', scripts)

/** Null where the attempt is not counted: it was not asked for, or the address refused the attempt. */
type AttemptReply = [ofAddress: AddressReply | null, ofAccount: AccountReply | null]
type AddressReply = [outcome: 'counted' | 'refused' | 'behind' | 'crowded', count: number, leftMs: number]
type AccountReply = [outcome: LetIn['outcome'], failures: number, waitMs: number, requests: number]

/** An attempt as its address counts it. */
interface AddressAttempt {
  id: string
  /** The network of the login: its ticket may be redeemed from another one. */
  network: string
}

export interface Attempt extends AddressAttempt {
  /** The digest of the e-mail address. */
  account: string
  /** The device that it counts for; null for the count of unknown devices. */
  device: string | null
  /** The consecutive failures of that count before it. */
  failures: number
}

/** An attempt that is counted for its address, or for its address and its account. */
type Counted = AddressAttempt & Partial<Attempt>
/** What a script counts for an address. */
type Kind = 'attempt' | 'redemption' | 'request'

/** The answer of Redis to an attempt at an account. */
export interface LetIn {
  outcome: 'known' | 'unknown' | 'delayed' | 'too_many'
  /** Consecutive failures before it: of the known device, or of all unknown devices together. */
  failures: number
  /** The time until the next attempt is allowed, in milliseconds. */
  waitMs: number
  /** Requests in this minute, including this one. */
  requests: number
}

/** How an attempt ended; `nothing` if nobody learned anything from it. */
export type Settled = 'failed' | 'succeeded' | 'nothing'

export class Attempts {
  readonly #redis: CountingRedis
  readonly #config: GatewayConfig
  readonly #keyring: Keyring
  readonly #perAddress: number
  /** Addresses over their limit. */
  readonly #refusals = new Refusals()

  constructor(config: GatewayConfig, redis: CountingRedis, keyring: Keyring) {
    this.#redis = redis
    this.#config = config
    this.#keyring = keyring
    this.#perAddress = config.limitPerAddress
  }

  newAttempt(ip: string): AddressAttempt {
    return { id: randomBytes(ID_BYTES).toString('base64url'), network: storedNetworkOf(ip) }
  }

  /** Refuses an address from memory while it is over its limit. Throws `too_many_requests`. */
  refuseRemembered({ network }: AddressAttempt, reply: FastifyReply): void {
    const resetS = this.#perAddress === 0 ? undefined : this.#refusals.remembered(network)
    if (resetS === undefined) return
    sendLimitHeaders(reply, this.#perAddress, { count: this.#perAddress, resetS })
    throw refusal(resetS)
  }

  /** Counts a request that is no attempt, with any outcome. Throws `too_many_requests`. */
  async countRequest(ip: string, reply: FastifyReply): Promise<void> {
    const attempt = this.newAttempt(ip)
    this.refuseRemembered(attempt, reply)
    await this.takeForAddress(attempt, reply, 'request')
  }

  /**
   * Counts an attempt for its address. Returns whether it goes behind. Throws `too_many_requests`.
   * While Redis does not count, all attempts are admitted, because nothing is hashed then.
   */
  async takeForAddress(attempt: AddressAttempt, reply: FastifyReply, kind: Kind = 'attempt'): Promise<boolean> {
    const counted = await this.#askAddress(attempt, kind)
    return counted !== undefined && this.#isBehind(attempt, counted, reply)
  }

  /** Counts an attempt for its account. Rejects if Redis does not count it. */
  async takeForAccount(attempt: Attempt): Promise<LetIn> {
    const [, ofAccount] = await this.#take(attempt, '')
    return letInOf(ofAccount)
  }

  /** Counts an attempt for its address and its account, by one command. */
  async take(attempt: Attempt, reply: FastifyReply, counted: (isBehind: boolean) => void): Promise<LetIn> {
    if (this.#perAddress === 0) {
      counted(await this.takeForAddress(attempt, reply))
      return await this.takeForAccount(attempt)
    }
    const [ofAddress, ofAccount] = await this.#take(attempt, 'attempt')
    counted(this.#isBehind(attempt, countOf(ofAddress), reply))
    return letInOf(ofAccount)
  }

  /** Whether the job of a ticket may be hashed while its client is present. */
  async mayStart(attempt: Attempt): Promise<boolean> {
    if (attempt.device !== null) return true
    const counted = await this.#askAddress(attempt, 'redemption')
    return counted === undefined || counted.outcome === 'counted'
  }

  /** Only a failure counts after this. Not awaited: if the command is lost, the attempt lapses. */
  endForAddress({ id, network }: AddressAttempt, hasFailed: boolean): void {
    if (this.#perAddress === 0) return
    const args = [id, WINDOW_MS, hasFailed ? 'failed' : 'nothing', '', '', 0, ...MEMORY_MS]
    this.#run(endAttempt, { id, network }, args).catch(() => undefined)
  }

  /**
   * Ends an attempt for its account and, for an unknown device, for its address. A right password
   * resets the failures of its count (NIST SP 800-63B-4, 3.2.2).
   */
  async end(attempt: Attempt, settled: Settled): Promise<void> {
    const { id, device } = attempt
    const { guessesPerAccount: perAccount, deviceTtlS } = this.#config
    const isOfAddress = device === null && this.#perAddress > 0
    const isTogether = isOfAddress && perAccount > 0
    if (isOfAddress && !isTogether) this.endForAddress(attempt, settled === 'failed')
    if (perAccount === 0) return
    const ofAddress = isTogether ? WINDOW_MS : ''
    const args = [id, ofAddress, settled, 1, device ?? '', deviceTtlS * 1_000, ...MEMORY_MS]
    await this.#run(endAttempt, attempt, args)
  }

  /** Throws `too_many_requests` if the address refuses the attempt. */
  #isBehind({ network }: AddressAttempt, counted: CountOfAddress, reply: FastifyReply): boolean {
    const { outcome, resetS } = counted
    sendLimitHeaders(reply, this.#perAddress, counted)
    if (outcome === 'refused') this.#refusals.remember(network, resetS)
    if (outcome === 'refused' || outcome === 'crowded')
      throw refusal(outcome === 'refused' ? resetS : BEHIND_RETRY_AFTER_S)
    return outcome === 'behind'
  }

  /** Undefined if there is no limit, or while Redis does not count. */
  async #askAddress({ id, network }: AddressAttempt, kind: Kind): Promise<CountOfAddress | undefined> {
    if (this.#perAddress === 0) return undefined
    try {
      return countOf((await this.#take({ id, network }, kind))[0])
    } catch {
      return undefined
    }
  }

  /** @param kind what the address counts; empty if it counts nothing */
  async #take(attempt: Counted, kind: Kind | ''): Promise<AttemptReply> {
    const { loginWaitMs: holdMs, ticketTtlMs: ticketMs } = this.#config
    const max = this.#perAddress
    // A failure counts for a minute after its hash, which is made while its client is present.
    const pendingMs = WINDOW_MS + presentMs(holdMs, true)
    const ofAddress = [kind, max, WINDOW_MS, pendingMs, ticketMs, max * BEHIND_FOR_EACH]
    const { limitPerAccount: perMinute, guessesPerDevice: perDevice } = this.#config
    const isOfAccount = attempt.account !== undefined
    const ofAccount = [
      isOfAccount ? 1 : '',
      attempt.device ?? '',
      perMinute,
      perDevice,
      ...delayArguments(this.#config),
    ]
    return await this.#run(takeAttempt, attempt, [attempt.id, ...ofAddress, ...ofAccount])
  }

  /** Runs a script with the keys of the address, the account and the device. */
  #run<Reply>(
    script: Script<Reply>,
    { network, account, device }: Counted,
    args: readonly (string | number)[],
  ): Promise<Reply> {
    const key = (kind: string, name: string | null = null) => `${this.#config.queuePrefix}:${kind}:${name ?? '-'}`
    const address = key('limit:address', network)
    const name = account === undefined ? null : accountNameOf(account, this.#keyring)
    const keys = [
      ...[address, `${address}:pending`, `${address}:behind`],
      ...[key('limit:account', name), key('guesses', name), key('guesses:pending', name)],
      ...[key('limit:device', device), key('guesses:devices', name), key('guesses:device-pending', device)],
    ]
    return countedBy(this.#redis, script(this.#redis.connection, keys, ...args))
  }
}

/** The failures that cause no delay, and the life of a pending attempt, as arguments of scripts. */
function delayArguments(config: GatewayConfig): [undelayed: number, lifeMs: number] {
  return [config.guessesPerAccount, config.ticketTtlMs + UNTIL_ADDED_MS]
}

interface CountOfAddress extends Count {
  outcome: AddressReply[0]
}

function countOf(reply: AddressReply | null): CountOfAddress {
  if (reply === null) throw new TypeError('the attempt was not counted for its address')
  const [outcome, count, leftMs] = reply
  return { outcome, count, resetS: Math.ceil(leftMs / 1_000) }
}

function letInOf(reply: AccountReply | null): LetIn {
  if (reply === null) throw new TypeError('the attempt was not counted for its account')
  const [outcome, failures, waitMs, requests] = reply
  return { outcome, failures, waitMs, requests }
}

function refusal(retryAfterS: number): ApiError {
  return new ApiError('too_many_requests', { reason: 'address_limit', retryAfterS: Math.max(1, retryAfterS) })
}

// Operators read and forget the failures of an account here.

const readFailures = defineScript<[failures: number, waitMs: number, devices: number]>('readFailures-3', scripts)

const FAILURES = ['guesses', 'guesses:pending', 'guesses:devices', 'limit:account']

export class Failures {
  readonly #config: GatewayConfig
  readonly #redis: CountingRedis
  readonly #keyring: Keyring

  constructor(config: GatewayConfig, redis: CountingRedis, keyring: Keyring) {
    this.#config = config
    this.#redis = redis
    this.#keyring = keyring
  }

  /**
   * Reads the failures of unknown devices, when the next login of one is allowed (null if it is now),
   * and how many known devices have failed. Rejects while Redis does not answer.
   */
  async read(email: string) {
    const { queuePrefix: prefix, guessesPerAccount: most } = this.#config
    const name = accountNameOf(accountOfEmail(email), this.#keyring)
    const keys = ['guesses', 'guesses:pending', 'guesses:devices'].map((kind) => `${prefix}:${kind}:${name}`)
    const reading = readFailures(this.#redis.connection, keys, ...delayArguments(this.#config))
    const [failures, waitMs, failedDevices] = await countedBy(this.#redis, reading)
    return {
      failures,
      waitUntil: most > 0 && waitMs > 0 ? new Date(Date.now() + waitMs).toISOString() : null,
      failedDevices,
    }
  }

  /** Forgets the failures. Resolves with the number of deleted counts. Throws `unavailable`. */
  forget(email: string): Promise<number> {
    return this.#delete([accountOfEmail(email)])
  }

  /** Forgets the failures and requests of an account, by its address and its id. Throws `unavailable`. */
  async forgetAccount({ id, email }: { id: string; email: string }): Promise<void> {
    await this.#delete([accountOfEmail(email), accountDigest(id)])
  }

  #delete(accounts: readonly string[]): Promise<number> {
    const names = accounts.flatMap((account) => accountNamesOf(account, this.#keyring))
    const keys = FAILURES.flatMap((kind) => names.map((name) => `${this.#config.queuePrefix}:${kind}:${name}`))
    return orUnavailable(this.#redis.connection.del(keys))
  }
}
