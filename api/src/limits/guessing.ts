/**
 * Slows guessing down and locks nobody out. Attempts at passwords are counted in Redis, for all
 * gateways together. Until its result is known, an attempt counts as a failure: concurrent wrong
 * passwords get no more hashes than consecutive ones. An attempt lapses without its job, its client
 * or its gateway. Nothing here checks whether an account exists.
 *
 * For an address, the failures of unknown devices within a minute count. An attempt beyond its
 * limit is deferred (*behind*): it gets a ticket without a job. A redemption starts it once the
 * address has room (mayStart).
 *
 * For an account, the consecutive failures of all unknown devices count together. Each failure
 * delays the next attempt of an unknown device longer. A device that has logged in to an account is
 * counted separately; a password reset by mail makes its device known.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Keyring } from '@spillway/queue/client'
import { presentMs } from '@spillway/queue/order'
import { defineScript, type Script } from '@spillway/queue/redis/script'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import type { GatewayConfig } from '../config.js'
import { ApiError, orUnavailable, redisUnavailable } from '../http/problems.js'
import { storedNetworkOf } from '../http/requests.js'
import type { GatewayMetrics } from '../ops/metrics.js'
import {
  accountDigest,
  accountNameOf,
  accountNamesOf,
  accountOfEmail,
  type Count,
  type CountingRedis,
  counted,
  Refusals,
  scripts,
  sendLimitHeaders,
} from './limits.js'

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
const ATTEMPT_ID_BYTES = 9

// The actions of one script.
const take = defineScript<TakeReply>('attempts-9', scripts)
const finish = defineScript<number>('attempts-9', scripts)
const read = defineScript<[failures: number, waitMs: number, devices: number]>('attempts-9', scripts)

/** Null where the attempt is not counted: it was not asked for, or the address refused the attempt. */
type TakeReply = [ofAddress: AddressReply | null, ofAccount: AccountReply | null]
type AddressReply = [outcome: 'counted' | 'refused' | 'behind' | 'crowded', count: number, leftMs: number]
type AccountReply = [outcome: CountOfAccount['outcome'], failures: number, waitMs: number, requests: number]

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
/** What the script counts for an address. */
type Kind = 'attempt' | 'redemption' | 'request'

interface CountOfAddress extends Count {
  outcome: AddressReply[0]
}

/** The answer of Redis to an attempt at an account. */
interface CountOfAccount {
  outcome: 'known' | 'unknown' | 'delayed' | 'too_many'
  /** Consecutive failures before it: of the known device, or of all unknown devices together. */
  failures: number
  /** The time until the next attempt is allowed, in milliseconds. */
  waitMs: number
  /** Requests in this minute, including this one. */
  requests: number
}

/** A login that was let in. */
interface LetIn {
  attempt: Attempt
  /** The generation of the token that the device showed. */
  generation: string | undefined
  /** Whether it waits until other attempts of its address prove to be no guesses. */
  isBehind: boolean
}

interface GuessingOptions {
  config: GatewayConfig
  redis: CountingRedis
  keyring: Keyring
  metrics: GatewayMetrics
  log: FastifyBaseLogger
  /** Redis's clock. */
  nowMs(): number
}

export class Guessing {
  readonly #options: GuessingOptions
  readonly #perAddress: number
  readonly #devices: DeviceTokens
  /** Addresses over their limit. */
  readonly #refusals = new Refusals()

  constructor(options: GuessingOptions) {
    const { config, keyring, nowMs } = options
    this.#options = options
    this.#perAddress = config.limitPerAddress
    this.#devices = new DeviceTokens(keyring, { ttlS: config.deviceTtlS, nowMs })
  }

  /** Whether a request shows the token of a device that has logged in to its account. */
  showsKnownDevice({ body, headers }: FastifyRequest): boolean {
    const token = deviceTokenOf(headers)
    const email = typeof body === 'object' && body !== null && 'email' in body ? body.email : undefined
    if (token === '' || typeof email !== 'string') return false
    return this.#devices.read(accountOfEmail(email), token) !== null
  }

  /**
   * Counts a login for its address and its account, as a failure until its result is known. Throws
   * `too_many_requests`, or `unavailable` while Redis does not count. Nothing is hashed then.
   *
   * @param email normalized
   */
  async letIn(email: string, { ip, headers }: FastifyRequest, reply: FastifyReply): Promise<LetIn> {
    const account = accountDigest(email)
    const counts = this.#options.config.guessesPerAccount > 0
    const known = counts ? this.#devices.read(account, deviceTokenOf(headers)) : null
    return { ...(await this.#count(account, known?.id ?? null, ip, reply)), generation: known?.generation }
  }

  /**
   * Compares the generation of a known device with the generation of the account. It is undefined
   * if there is no account. A device of another generation is counted and refused as an unknown one.
   */
  async confirm(letIn: LetIn, generation: string | undefined, ip: string, reply: FastifyReply): Promise<LetIn> {
    const { attempt } = letIn
    if (attempt.device === null) return letIn
    if (letIn.generation !== generation) {
      this.end(attempt, 'nothing')
      return { ...(await this.#count(attempt.account, null, ip, reply)), generation: undefined }
    }
    this.#options.metrics.loginAttempts.inc({ device: 'known' })
    return letIn
  }

  /** Whether an attempt that was deferred (behind) may be hashed now, while its client is present. */
  async mayStart({ id, network, device }: Attempt): Promise<boolean> {
    if (device !== null) return true
    const counted = await this.#askAddress({ id, network }, 'redemption')
    return counted === undefined || counted.outcome === 'counted'
  }

  /**
   * Ends an attempt for its account and, for an unknown device, for its address: with `nothing`, as if
   * it had not been made. A right password resets the failures of its count (NIST SP 800-63B-4, 3.2.2).
   * Not awaited: if the command is lost, the count stays too high until the attempt lapses.
   */
  end(attempt: Attempt, settled: 'failed' | 'succeeded' | 'nothing'): void {
    const { config, log } = this.#options
    const isOfAddress = attempt.device === null && this.#perAddress > 0
    const isOfAccount = config.guessesPerAccount > 0
    if (!isOfAddress && !isOfAccount) return
    const ofAccount = [isOfAccount ? 1 : '', attempt.device ?? '', config.deviceTtlS * 1_000, ...MEMORY_MS]
    const args = [attempt.id, isOfAddress ? WINDOW_MS : '', settled, ...ofAccount]
    this.#run(finish, attempt, ['finish', ...args]).catch((error: unknown) =>
      log.debug({ err: error }, 'an attempt could not be counted'),
    )
  }

  /** @param user with the version of the password that was verified or set */
  issueDeviceToken(account: string, user: { userId: string; credentialVersion: number }): string {
    return this.#devices.issue(account, generationOf(user))
  }

  /** Counts a request that is no attempt, with any outcome, for its address. Throws `too_many_requests`. */
  async countRequest(ip: string, reply: FastifyReply): Promise<void> {
    const attempt = newAttempt(ip)
    this.#refuseRemembered(attempt, reply)
    const counted = await this.#askAddress(attempt, 'request')
    if (counted !== undefined) this.#isBehind(attempt, counted, reply)
  }

  /** Counts an attempt of a known or an unknown device. Throws if it is refused. */
  async #count(account: string, device: string | null, ip: string, reply: FastifyReply) {
    const { limitPerAccount: perMinute, guessesPerAccount } = this.#options.config
    const attempt: Attempt = { ...newAttempt(ip), account, device, failures: 0 }
    if (device === null) this.#refuseRemembered(attempt, reply)
    if (perMinute === 0 && guessesPerAccount === 0) {
      const counted = await this.#askAddress(attempt, 'attempt')
      return { attempt, isBehind: counted !== undefined && this.#isBehind(attempt, counted, reply) }
    }
    // An attempt that Redis does not count gets no hash.
    const kind = device === null && this.#perAddress > 0 ? 'attempt' : ''
    const { ofAddress, ofAccount } = await orUnavailable(this.#take(attempt, kind))
    const isBehind = ofAddress !== undefined && this.#isBehind(attempt, ofAddress, reply)
    if (ofAccount === undefined) throw redisUnavailable()
    const { outcome, failures, waitMs, requests } = ofAccount
    const waitS = Math.max(1, Math.ceil(waitMs / 1_000))
    if (outcome === 'too_many') sendLimitHeaders(reply, perMinute, { count: requests, resetS: waitS })
    if (outcome === 'too_many' || outcome === 'delayed') {
      if (kind !== '') this.#failForAddress(attempt)
      const reason = outcome === 'delayed' ? 'guesses_delayed' : 'account_limit'
      throw new ApiError('too_many_requests', { reason, retryAfterS: waitS })
    }
    // A known device is counted once its token matches the account's current password.
    if (outcome === 'unknown') this.#options.metrics.loginAttempts.inc({ device: 'unknown' })
    // A device that failed too often is treated as unknown; only its failures count for its address.
    return { attempt: { ...attempt, failures, device: outcome === 'known' ? device : null }, isBehind }
  }

  /** Refuses an address from memory while it is over its limit. Throws `too_many_requests`. */
  #refuseRemembered({ network }: AddressAttempt, reply: FastifyReply): void {
    const resetS = this.#perAddress === 0 ? undefined : this.#refusals.remembered(network)
    if (resetS === undefined) return
    sendLimitHeaders(reply, this.#perAddress, { count: this.#perAddress, resetS })
    throw refusal(resetS)
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

  /**
   * Counts for the address only. Undefined if there is no limit, or while Redis does not count: all
   * requests are then admitted, because nothing is hashed.
   */
  async #askAddress({ id, network }: AddressAttempt, kind: Kind): Promise<CountOfAddress | undefined> {
    if (this.#perAddress === 0) return undefined
    const counted = await this.#take({ id, network }, kind).catch(() => undefined)
    return counted?.ofAddress
  }

  /**
   * Counts for the address and the account by one command. What the address refuses does not count for
   * the account.
   *
   * @param kind what the address counts; empty if it counts nothing
   */
  async #take(attempt: Counted, kind: Kind | '') {
    const { config } = this.#options
    const max = this.#perAddress
    // A failure counts for a minute after its hash, which is made while its client is present.
    const pendingMs = WINDOW_MS + presentMs(config.loginWaitMs, true)
    const ofAddress = [kind, max, WINDOW_MS, pendingMs, config.ticketTtlMs, max * BEHIND_FOR_EACH]
    const limits = [config.limitPerAccount, config.guessesPerDevice, ...this.#delays()]
    const ofAccount = [attempt.account === undefined ? '' : 1, attempt.device ?? '', ...limits]
    const [address, account] = await this.#run(take, attempt, ['take', attempt.id, ...ofAddress, ...ofAccount])
    return {
      ofAddress: address ? countOfAddress(address) : undefined,
      ofAccount: account ? countOfAccount(account) : undefined,
    }
  }

  /** The failures that cause no delay, and the life of a pending attempt, as arguments of the script. */
  #delays(): [undelayed: number, lifeMs: number] {
    const { guessesPerAccount, ticketTtlMs } = this.#options.config
    return [guessesPerAccount, ticketTtlMs + UNTIL_ADDED_MS]
  }

  /** Only a failure counts after this. Not awaited: if the command is lost, the attempt lapses. */
  #failForAddress({ id, network }: Attempt): void {
    this.#run(finish, { network }, ['finish', id, WINDOW_MS, 'failed', '', '', 0, ...MEMORY_MS]).catch(() => undefined)
  }

  /** Runs the script with the keys of the address, the account and the device. */
  #run<Reply>(
    script: Script<Reply>,
    { network, account, device }: Partial<Attempt>,
    args: readonly (string | number)[],
  ): Promise<Reply> {
    const { config, redis, keyring } = this.#options
    const key = (kind: string, name: string | null = null) => `${config.queuePrefix}:${kind}:${name ?? '-'}`
    const address = key('limit:address', network)
    const name = account === undefined ? null : accountNameOf(account, keyring)
    const keys = [
      ...[address, `${address}:pending`, `${address}:behind`],
      ...[key('limit:account', name), key('guesses', name), key('guesses:pending', name)],
      ...[key('limit:device', device), key('guesses:devices', name), key('guesses:device-pending', device)],
    ]
    return counted(redis, script(redis.connection, keys, ...args))
  }

  // Operators read and forget the failures of an account.

  /**
   * Reads the failures of unknown devices, when the next login of one is allowed (null if it is now),
   * and how many known devices have failed. Rejects while Redis does not answer.
   */
  async failuresOf(email: string) {
    const account = accountOfEmail(email)
    const [failures, waitMs, failedDevices] = await this.#run(read, { account }, ['read', ...this.#delays()])
    const isDelayed = this.#options.config.guessesPerAccount > 0 && waitMs > 0
    return { failures, waitUntil: isDelayed ? new Date(Date.now() + waitMs).toISOString() : null, failedDevices }
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
    const { config, redis, keyring } = this.#options
    const names = accounts.flatMap((account) => accountNamesOf(account, keyring))
    const keys = FAILURES.flatMap((kind) => names.map((name) => `${config.queuePrefix}:${kind}:${name}`))
    return orUnavailable(redis.connection.del(keys))
  }
}

/** The counts of an account that operators forget. */
const FAILURES = ['guesses', 'guesses:pending', 'guesses:devices', 'limit:account']

function newAttempt(ip: string): AddressAttempt {
  return { id: randomBytes(ATTEMPT_ID_BYTES).toString('base64url'), network: storedNetworkOf(ip) }
}

function countOfAddress([outcome, count, leftMs]: AddressReply): CountOfAddress {
  return { outcome, count, resetS: Math.ceil(leftMs / 1_000) }
}

function countOfAccount([outcome, failures, waitMs, requests]: AccountReply): CountOfAccount {
  return { outcome, failures, waitMs, requests }
}

function refusal(retryAfterS: number): ApiError {
  return new ApiError('too_many_requests', { reason: 'address_limit', retryAfterS: Math.max(1, retryAfterS) })
}

// Device tokens (OWASP, "Slow Down Online Guessing Attacks with Device Cookies"): a client that has
// logged in to an account sends its token with the next login, and is counted separately. A token
// grants nothing and is not stored: `device.milliseconds.generation.signature`, signed with the seal
// keys for its account.
//
// The generation depends on user and password: a new password makes every device unknown.

const DEVICE_ID_BYTES = 16
/** Two generations are equal with a probability of 2^-48, which allows one more guess. */
const GENERATION_BYTES = 6
const TOKEN = /^([\w-]{22})\.(\d{13})\.([\w-]{8})\.([\w-]{43})$/
/** Seconds that a token may be ahead: after a failover, Redis's clock may be behind. */
const CLOCK_TOLERANCE_S = 90

export interface KnownDevice {
  id: string
  /** The generation of the account when the token was issued. */
  generation: string
}

export function generationOf(user: { userId: string; credentialVersion: number }): string {
  const digest = hash('sha256', `${user.userId} ${user.credentialVersion}`, 'buffer')
  return digest.subarray(0, GENERATION_BYTES).toString('base64url')
}

export class DeviceTokens {
  readonly #keyring: Keyring
  readonly #ttlS: number
  readonly #nowMs: () => number

  /** @param options.nowMs Redis's clock */
  constructor(keyring: Keyring, { ttlS, nowMs }: { ttlS: number; nowMs(): number }) {
    this.#keyring = keyring
    this.#ttlS = ttlS
    this.#nowMs = nowMs
  }

  /** Issues a token for a new device. */
  issue(account: string, generation: string): string {
    const device = randomBytes(DEVICE_ID_BYTES).toString('base64url')
    const issuedAt = String(this.#nowMs())
    const [signature] = this.#macsOf(account, device, issuedAt, generation)
    return `${device}.${issuedAt}.${generation}.${signature.toString('base64url')}`
  }

  /** The device of a token; null unless it was issued for this account within its life. */
  read(account: string, token: string): KnownDevice | null {
    const [, id = '', issuedAt = '', generation = '', signature = ''] = TOKEN.exec(token) ?? []
    const ageMs = this.#nowMs() - Number(issuedAt)
    if (id === '' || ageMs > this.#ttlS * 1_000 || ageMs < -CLOCK_TOLERANCE_S * 1_000) return null
    return isSigned(this.#macsOf(account, id, issuedAt, generation), signature) ? { id, generation } : null
  }

  #macsOf(...signed: [account: string, device: string, issuedAt: string, generation: string]) {
    return this.#keyring.macs({ purpose: 'device', id: JSON.stringify(signed) })
  }
}

/** Whether a signature equals one of these. Each is compared in constant time. */
export function isSigned(macs: readonly Buffer[], signature: string): boolean {
  const given = Buffer.from(signature, 'base64url')
  return macs.some((mac) => given.length === mac.length && timingSafeEqual(given, mac))
}

/** Browsers accept the prefix only over TLS, and only from this host (RFC 6265bis, 4.1.3.2). */
export const DEVICE_COOKIE = '__Host-spillway-device'
const IN_COOKIES = new RegExp(`(?:^|; *)${DEVICE_COOKIE}=([\\w.-]+)`)

/** The token in the header of a request, or in its cookie; empty if it has no token. */
export function deviceTokenOf(headers: IncomingHttpHeaders): string {
  const sent = headers['spillway-device']
  if (typeof sent === 'string') return sent
  return IN_COOKIES.exec(headers.cookie ?? '')?.[1] ?? ''
}
