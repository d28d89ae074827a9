/**
 * Attempts at passwords, counted for their address, which any number of people may share. An attempt counts when it is made, and no longer
 * once it succeeded or revealed nothing. Only failures use the limit up, each for a minute.
 *
 * Until its result is known, an attempt counts as a failure: no more of a thousand wrong ones at once are hashed than of a thousand in
 * turn. Attempts beyond that go behind: each gets a ticket, whose job is hashed only once a redemption finds room (mayBeHashed), and while
 * its client is there. So everything that may be hashed within the minute is counted.
 */

import { toCount, toList } from '@spillway/queue/redis/unexpected-reply'
import { randomBytes } from '@spillway/queue/wire/seal'
import type { FastifyReply } from 'fastify'
import { storedNetworkOf } from '../client-network.js'
import { atHome, type Count, type CountingRedis } from '../counts.js'
import { ApiError } from '../errors.js'
import { Refusals, sendLimitHeaders } from '../limits.js'
import { beginAttempt, endAttempt } from './attempt-scripts.js'

/** How long a failure counts. */
const WINDOW_MS = 60_000
/** Attempts that may wait behind, for each that the limit allows: with those that count, what the limit allows in a ticket's life. */
const BEHIND_FOR_EACH = 4
/** The Retry-After where all these wait. */
const BEHIND_RETRY_AFTER_S = 5
const ID_BYTES = 9

/** An attempt as it is counted for its address. */
export interface AddressAttempt {
  id: string
  /** Where it came from: its ticket may be redeemed elsewhere. */
  network: string
}

export interface CountedAttempt extends AddressAttempt {
  /** Whether it goes behind: a ticket at once, and no hash until {@link AddressAttempts.mayBeHashed}. */
  isBehind: boolean
}

/** What a script works on. */
export interface ScriptInput {
  keys: string[]
  args: (string | number)[]
}

/** An attempt that is counted by the command that counts it for its account. */
export interface CountedTogether extends ScriptInput {
  id: string
  /** Takes the answer of the script. Throws `too_many_requests`. */
  counted(answer: unknown): CountedAttempt
}

interface AddressAttemptsOptions {
  redis: readonly CountingRedis[]
  queuePrefix: string
  /** Failures a minute; 0 is no limit. */
  max: number
  /** The longest time that a client counts as present after it asked, in milliseconds. */
  presentMs: number
  ticketTtlMs: number
}

export class AddressAttempts {
  readonly #redis: readonly CountingRedis[]
  readonly #queuePrefix: string
  readonly #max: number
  readonly #bounds: readonly number[]
  readonly #refusals = new Refusals()
  /**
   * Whether one command can count an attempt here and for its account: where there is a limit, and one Redis server. With several, address
   * and account have their counts on servers of their own, as each of both comes with many of the other.
   */
  readonly isTogether: boolean

  constructor({ redis, queuePrefix, max, presentMs, ticketTtlMs }: AddressAttemptsOptions) {
    this.#redis = redis
    this.#queuePrefix = queuePrefix
    this.#max = max
    // An attempt counts for a minute from its hash, which comes while its client is present.
    this.#bounds = [max, WINDOW_MS, WINDOW_MS + presentMs, ticketTtlMs, max * BEHIND_FOR_EACH]
    this.isTogether = max > 0 && redis.length === 1
  }

  /** Refuses an address from memory while it is known to be over its limit. Throws `too_many_requests`. */
  refuseRemembered(address: string, reply: FastifyReply): void {
    this.#attemptOf(address, reply)
  }

  /** Counts an attempt. Throws `too_many_requests`. */
  begin(address: string, reply: FastifyReply): Promise<CountedAttempt> {
    return this.#count(address, reply, 'attempt')
  }

  /** The same, for the command that counts it for its account as well. */
  beginTogether(address: string, reply: FastifyReply): CountedTogether {
    const attempt = this.#attemptOf(address, reply)
    const counted = (answer: unknown) => this.#judge(attempt, parse(answer), reply)
    return { id: attempt.id, ...this.#inputOf(attempt, 'attempt'), counted }
  }

  /** Counts a request that is not an attempt: for a minute, whatever its outcome. Throws `too_many_requests`. */
  async count(address: string, reply: FastifyReply): Promise<void> {
    await this.#count(address, reply, 'request')
  }

  /** Whether the job of a ticket may be hashed while its client is there. */
  async mayBeHashed(attempt: AddressAttempt): Promise<boolean> {
    if (this.#max === 0) return true
    const counted = await this.#ask(attempt, 'redemption')
    return counted === undefined || counted.outcome === 'counted'
  }

  /** Ends an attempt: only a failure still counts. Not awaited: a command that is lost leaves it to lapse. */
  end(attempt: AddressAttempt, hasFailed: boolean): void {
    if (this.#max === 0) return
    const { keys, args } = this.endTogether(attempt, hasFailed)
    atHome(this.#keyOf(attempt), this.#redis, ({ connection }) => endAttempt(connection, keys, ...args)).catch(
      () => undefined,
    )
  }

  /** The same, for the command that ends it for its account as well. */
  endTogether(attempt: AddressAttempt, hasFailed: boolean): ScriptInput {
    return { keys: this.#keysOf(attempt), args: [attempt.id, hasFailed ? 1 : 0, WINDOW_MS] }
  }

  /** Throws where the address is refused from memory. */
  #attemptOf(address: string, reply: FastifyReply): AddressAttempt {
    const attempt = { id: randomBytes(ID_BYTES).toString('base64url'), network: storedNetworkOf(address) }
    const resetS = this.#max === 0 ? undefined : this.#refusals.remembered(attempt.network)
    if (resetS === undefined) return attempt
    sendLimitHeaders(reply, this.#max, { count: this.#max, resetS })
    throw refusal(resetS)
  }

  async #count(address: string, reply: FastifyReply, kind: 'attempt' | 'request'): Promise<CountedAttempt> {
    const attempt = this.#attemptOf(address, reply)
    const counted = this.#max === 0 ? undefined : await this.#ask(attempt, kind)
    return counted === undefined ? { ...attempt, isBehind: false } : this.#judge(attempt, counted, reply)
  }

  /** Undefined while Redis does not count: then nothing is hashed anyway. */
  async #ask(attempt: AddressAttempt, kind: 'attempt' | 'redemption' | 'request'): Promise<CountOfAddress | undefined> {
    const { keys, args } = this.#inputOf(attempt, kind)
    try {
      const ask = ({ connection }: CountingRedis) => beginAttempt(connection, keys, ...args)
      return parse(toList(await atHome(this.#keyOf(attempt), this.#redis, ask))[0])
    } catch {
      return undefined
    }
  }

  #inputOf(attempt: AddressAttempt, kind: 'attempt' | 'redemption' | 'request'): ScriptInput {
    return { keys: this.#keysOf(attempt), args: [attempt.id, kind, ...this.#bounds] }
  }

  /** Throws `too_many_requests` where that is what it says. */
  #judge(attempt: AddressAttempt, counted: CountOfAddress, reply: FastifyReply): CountedAttempt {
    const { outcome, resetS } = counted
    sendLimitHeaders(reply, this.#max, counted)
    if (outcome === 'refused') this.#refusals.remember(attempt.network, resetS)
    if (outcome === 'refused' || outcome === 'crowded')
      throw refusal(outcome === 'refused' ? resetS : BEHIND_RETRY_AFTER_S)
    return { ...attempt, isBehind: outcome === 'behind' }
  }

  #keyOf({ network }: AddressAttempt): string {
    return `${this.#queuePrefix}:limit:address:${network}`
  }

  #keysOf(attempt: AddressAttempt): string[] {
    return ['', ':pending', ':behind'].map((part) => this.#keyOf(attempt) + part)
  }
}

interface CountOfAddress extends Count {
  outcome: string
}

/** Reads what a script says of the address. Throws where it is something else. */
function parse(answer: unknown): CountOfAddress {
  const [outcome, count, leftMs] = toList(answer)
  return { outcome: String(outcome), count: toCount(count), resetS: Math.ceil(toCount(leftMs) / 1_000) }
}

function refusal(retryAfterS: number): ApiError {
  return new ApiError('too_many_requests', { reason: 'address_limit', retryAfterS: Math.max(1, retryAfterS) })
}
