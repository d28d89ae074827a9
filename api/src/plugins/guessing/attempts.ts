/**
 * Counts of attempts at passwords in Redis, shared by all gateways: for their address, which many
 * people may share, and for their account. Until its result is known, an attempt counts as a
 * failure: no more of a thousand wrong ones at once are hashed than of a thousand in turn. Whatever
 * happens to its job, its client and its gateway, it lapses by itself.
 *
 * Attempts beyond the limit of their address go behind: each gets a ticket, whose job is hashed
 * only once a redemption finds room (mayBeHashed), and while its client is there.
 */
import { presentMs } from '@spillway/queue/jobs/ticket'
import type { Keyring } from '@spillway/queue/queue-client'
import { defineScript, toCount, toList, UnexpectedReply } from '@spillway/queue/redis/script'
import { randomBytes } from '@spillway/queue/wire/seal'
import type { FastifyReply } from 'fastify'
import type { GatewayConfig } from '../../config.js'
import { storedNetworkOf } from '../client-network.js'
import { accountNameOf, atHome, type Count, type CountingRedis } from '../counts.js'
import { ApiError } from '../errors.js'
import { Refusals, sendLimitHeaders } from '../limits.js'
import type { Solved } from './challenges.js'

/** How long a failure counts for its address. */
const WINDOW_MS = 60_000
/** Attempts that may wait behind, for each that the limit allows: a ticket's life in all. */
const BEHIND_FOR_EACH = 4
/** The Retry-After where all these wait. */
const BEHIND_RETRY_AFTER_S = 5
/** The share of an account's failures that causes no delay: people try several passwords. */
export const UNDELAYED_SHARE = 0.1
const HOUR_MS = 3_600_000
/**
 * How long one, two, three and more failures of an account are remembered. Anyone can fail on any
 * address: a single failure must not stay in Redis for long.
 */
const MEMORY_MS = [6 * HOUR_MS, 24 * HOUR_MS, 96 * HOUR_MS, 720 * HOUR_MS]
/** How long a used challenge is remembered after its expiry, in milliseconds: clocks differ. */
const CHALLENGE_TOLERANCE_MS = 180_000
/** The longest time from an attempt that is let in until its job is added, in milliseconds. */
const UNTIL_ADDED_MS = 10_000
const ID_BYTES = 9

const scripts = new URL('../scripts/', import.meta.url)
const takeAttempt = defineScript('takeAttempt-10', scripts)
const endAttempt = defineScript('endAttempt-10', scripts)

const outcomes = [
  ...(['known', 'unknown', 'solved', 'unchecked'] as const),
  ...(['too_many', 'device_too_many', 'delayed', 'challenge'] as const),
]

export interface Attempt {
  id: string
  /** The digest of the e-mail address. */
  account: string
  /** The device whose count it is; null for the count of unknown devices. */
  device: string | null
  /** Where the login came from: its ticket may be redeemed from elsewhere. */
  network: string
  /** Consecutive failures before it, of that count. */
  failures: number
}

type OfAddress = Pick<Attempt, 'id' | 'network'>
/** The challenge that an attempt solved; `unchecked` where its answer is yet to be checked. */
type ChallengeAnswer = Solved | 'unchecked' | 'none'
/** An attempt that is counted for its address alone, or for its account as well. */
type Counted = OfAddress & Partial<Attempt>
/** What a script counts for an address. */
type Kind = 'attempt' | 'redemption' | 'request'

/** What Redis says of an attempt at an account. */
export interface LetIn {
  outcome: (typeof outcomes)[number]
  /** Consecutive failures before it: of the known device, or of all unknown devices together. */
  failures: number
  /** The time until the next attempt is allowed, in milliseconds. */
  waitMs: number
  /** Requests this minute, this one included. */
  requests: number
}

/** How an attempt ended; `nothing` when nobody learned anything by it. */
export type Settled = 'failed' | 'succeeded' | 'nothing'

export class Attempts {
  readonly #redis: readonly CountingRedis[]
  readonly #config: GatewayConfig
  readonly #keyring: Keyring
  readonly #perAddress: number
  /** Addresses over their limit. */
  readonly #refusals = new Refusals()

  constructor(config: GatewayConfig, redis: readonly CountingRedis[], keyring: Keyring) {
    this.#redis = redis
    this.#config = config
    this.#keyring = keyring
    this.#perAddress = config.LIMIT_PER_ADDRESS
  }

  newAttempt(ip: string): OfAddress {
    return { id: randomBytes(ID_BYTES).toString('base64url'), network: storedNetworkOf(ip) }
  }

  /** Refuses an address from memory while it is over its limit. Throws `too_many_requests`. */
  refuseRemembered(ip: string, reply: FastifyReply): void {
    const resetS = this.#perAddress === 0 ? undefined : this.#refusals.remembered(storedNetworkOf(ip))
    if (resetS === undefined) return
    sendLimitHeaders(reply, this.#perAddress, { count: this.#perAddress, resetS })
    throw refusal(resetS)
  }

  /** Counts a request that is no attempt, whatever its outcome. Throws `too_many_requests`. */
  async countRequest(ip: string, reply: FastifyReply): Promise<void> {
    this.refuseRemembered(ip, reply)
    await this.takeForAddress(this.newAttempt(ip), reply, 'request')
  }

  /**
   * Counts an attempt for its address. Returns whether it goes behind. Throws `too_many_requests`.
   * While Redis does not count, all are admitted: nothing is hashed then.
   */
  async takeForAddress(attempt: OfAddress, reply: FastifyReply, kind: Kind = 'attempt'): Promise<boolean> {
    const counted = await this.#askAddress(attempt, kind)
    return counted !== undefined && this.#isBehind(attempt, counted, reply)
  }

  /**
   * Counts an attempt for its account. Rejects when Redis does not answer as it must.
   *
   * @param answer `unchecked` where it is yet to be checked: an attempt that needs it has this
   *   outcome, and is not counted
   */
  async takeForAccount(attempt: Attempt, answer: ChallengeAnswer): Promise<LetIn> {
    const [, ofAccount] = await this.#take(attempt, '', answer)
    return letInOf(ofAccount)
  }

  /**
   * Counts an attempt for its address and then for its account: by one command with one Redis
   * server. Of several, each count has a server of its own.
   */
  async take(
    attempt: Attempt,
    answer: ChallengeAnswer,
    reply: FastifyReply,
    counted: (isBehind: boolean) => void,
  ): Promise<LetIn> {
    if (this.#perAddress === 0 || this.#redis.length > 1) {
      counted(await this.takeForAddress(attempt, reply))
      return await this.takeForAccount(attempt, answer)
    }
    const [ofAddress, ofAccount] = await this.#take(attempt, 'attempt', answer)
    counted(this.#isBehind(attempt, countOf(ofAddress), reply))
    return letInOf(ofAccount)
  }

  /** Whether the job of a ticket may be hashed while its client is there. */
  async mayBeHashed(attempt: Attempt): Promise<boolean> {
    if (attempt.device !== null) return true
    const counted = await this.#askAddress(attempt, 'redemption')
    return counted === undefined || counted.outcome === 'counted'
  }

  /** Only a failure still counts then. Not awaited: after a lost command the attempt lapses. */
  endForAddress({ id, network }: OfAddress, hasFailed: boolean): void {
    if (this.#perAddress === 0) return
    const args = [id, WINDOW_MS, hasFailed ? 'failed' : 'nothing', '', '', 0, ...MEMORY_MS]
    this.#run(endAttempt, { id, network }, args).catch(() => undefined)
  }

  /**
   * Ends an attempt for its account and, of an unknown device, for its address. A right password
   * ends what failed before (NIST SP 800-63B-4, 3.2.2).
   */
  async end(attempt: Attempt, settled: Settled, challengeId?: string): Promise<void> {
    const { id, device } = attempt
    const { GUESSES_PER_ACCOUNT: perAccount, DEVICE_TTL_S: deviceTtlS } = this.#config
    const isOfAddress = device === null && this.#perAddress > 0
    const isTogether = isOfAddress && perAccount > 0 && this.#redis.length === 1
    if (isOfAddress && !isTogether) this.endForAddress(attempt, settled === 'failed')
    if (perAccount === 0) return
    const ofAddress = isTogether ? WINDOW_MS : ''
    const args = [id, ofAddress, settled, 1, device ?? '', deviceTtlS * 1_000, ...MEMORY_MS]
    await this.#run(endAttempt, attempt, args, challengeId)
  }

  /** Throws `too_many_requests` for an attempt that its address refuses. */
  #isBehind({ network }: OfAddress, counted: CountOfAddress, reply: FastifyReply): boolean {
    const { outcome, resetS } = counted
    sendLimitHeaders(reply, this.#perAddress, counted)
    if (outcome === 'refused') this.#refusals.remember(network, resetS)
    if (outcome === 'refused' || outcome === 'crowded')
      throw refusal(outcome === 'refused' ? resetS : BEHIND_RETRY_AFTER_S)
    return outcome === 'behind'
  }

  /** Undefined without a limit, and while Redis does not count. */
  async #askAddress({ id, network }: OfAddress, kind: Kind): Promise<CountOfAddress | undefined> {
    if (this.#perAddress === 0) return undefined
    try {
      return countOf((await this.#take({ id, network }, kind))[0])
    } catch {
      return undefined
    }
  }

  /** @param kind of the address; empty for nothing */
  async #take(attempt: Counted, kind: Kind | '', answer?: ChallengeAnswer): Promise<unknown[]> {
    const { LOGIN_WAIT_MS: waitMs, TICKET_TTL_MS: ticketMs, GUESSES_PER_ACCOUNT: perAccount } = this.#config
    const max = this.#perAddress
    const solved = typeof answer === 'object' ? answer : undefined
    const solvedMs = solved === undefined ? 0 : Math.ceil(solved.leftMs) + CHALLENGE_TOLERANCE_MS
    const args = [
      ...[attempt.id, kind, max, WINDOW_MS],
      // A failure counts for a minute from its hash, which comes while its client is present.
      ...[WINDOW_MS + presentMs(waitMs, ticketMs), ticketMs, max * BEHIND_FOR_EACH],
      ...[answer === undefined ? '' : 1, attempt.device ?? '', answer === 'unchecked' ? -1 : solvedMs],
      ...[this.#config.LIMIT_PER_ACCOUNT, perAccount, this.#config.GUESSES_PER_DEVICE],
      ...delayArguments(this.#config),
    ]
    return toList(await this.#run(takeAttempt, attempt, args, solved?.id))
  }

  /** Runs a script where the account is counted, or else the address. */
  #run(
    script: typeof takeAttempt,
    { network, account, device }: Counted,
    args: readonly (string | number)[],
    challengeId?: string,
  ): Promise<unknown> {
    const key = (kind: string, name: string | null = null) => `${this.#config.QUEUE_PREFIX}:${kind}:${name ?? '-'}`
    const address = key('limit:address', network)
    const name = account === undefined ? null : accountNameOf(account, this.#keyring)
    const keys = [
      ...[address, `${address}:pending`, `${address}:behind`],
      ...[key('limit:account', name), key('guesses', name), key('guesses:pending', name)],
      ...[key('limit:device', device), key('guesses:devices', name), key('guesses:device-pending', device)],
      key('challenge', challengeId),
    ]
    const home = name === null ? address : key('limit:account', name)
    return atHome(home, this.#redis, ({ connection }) => script(connection, keys, ...args))
  }
}

/** The failures that cause no delay, and the life of a pending attempt, as scripts take them. */
export function delayArguments(config: GatewayConfig): [undelayed: number, lifeMs: number] {
  return [Math.ceil(config.GUESSES_PER_ACCOUNT * UNDELAYED_SHARE), config.TICKET_TTL_MS + UNTIL_ADDED_MS]
}

interface CountOfAddress extends Count {
  outcome: string
}

function countOf(answer: unknown): CountOfAddress {
  const [outcome, count, leftMs] = toList(answer)
  return { outcome: String(outcome), count: toCount(count), resetS: Math.ceil(toCount(leftMs) / 1_000) }
}

function letInOf(answer: unknown): LetIn {
  const [found, failures, waitMs, requests] = toList(answer)
  const outcome = outcomes.find((each) => each === found)
  if (outcome === undefined) throw new UnexpectedReply('Redis gave no outcome of an attempt')
  return { outcome, failures: toCount(failures), waitMs: toCount(waitMs), requests: toCount(requests) }
}

function refusal(retryAfterS: number): ApiError {
  return new ApiError('too_many_requests', { reason: 'address_limit', retryAfterS: Math.max(1, retryAfterS) })
}
