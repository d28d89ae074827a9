/**
 * Counts of attempts at an account in Redis, shared by all gateways. An attempt counts as failed from its admission until it is settled or
 * lapses: no more of a hundred at once get in than of a hundred in turn. It lapses with its ticket. So an attempt that revealed nothing does
 * not count, whatever happened to its job, its client and its gateway.
 */

import { toCount, toList, UnexpectedReply } from '@spillway/queue/redis/unexpected-reply'
import { randomBytes } from '@spillway/queue/wire/seal'
import { atHome, type CountingRedis } from '../counts.js'
import type { ScriptInput } from './address-attempts.js'
import { type AttemptOutcome, attemptOutcomes, beginAttempt, endAttempt } from './attempt-scripts.js'
import type { Solved } from './challenges.js'

/** The share of the allowed failures that causes no delay: people who forgot their password try several. */
const UNDELAYED_SHARE = 0.1
/**
 * How long one, two, three and more failures are remembered, in milliseconds. Anyone can fail on any address, so that a single failure must
 * not stay in Redis for long; and each took a hash.
 */
const HOUR_MS = 3_600_000
const MEMORY_MS = [6 * HOUR_MS, 24 * HOUR_MS, 96 * HOUR_MS, 720 * HOUR_MS]
/** A used challenge is remembered for so long after its expiry, in milliseconds: with several Redis servers their clocks differ. */
const CHALLENGE_TOLERANCE_MS = 180_000
/** From an attempt that is let in until its job is added, in milliseconds, at the most. */
const UNTIL_ADDED_MS = 10_000
const ID_BYTES = 9

/** An attempt that was let in: the account, and the known device that it comes from; both as named in Redis. */
interface Attempter {
  id: string
  account: string
  device: string | null
}

export interface LetIn {
  /** Of the attempt. */
  id: string
  outcome: AttemptOutcome
  /** Consecutive failures before this attempt: of all unknown devices of the account together, or of the known device. */
  failures: number
  /** The time until the next attempt is allowed, in milliseconds. */
  waitMs: number
  /** This minute, this one included. */
  requests: number
}

interface AttemptBounds {
  perMinute: number
  /** Consecutive failures of unknown devices together, and of one known device. */
  perAccount: number
  perDevice: number
  deviceTtlS: number
  ticketTtlMs: number
}

/** How an attempt ended; `nothing` when nobody learned anything by it. */
export type Settled = 'failed' | 'succeeded' | 'nothing'

export class Attempts {
  readonly #redis: readonly CountingRedis[]
  readonly #queuePrefix: string
  readonly #bounds: AttemptBounds

  constructor(redis: readonly CountingRedis[], queuePrefix: string, bounds: AttemptBounds) {
    this.#redis = redis
    this.#queuePrefix = queuePrefix
    this.#bounds = bounds
  }

  /**
   * Counts an attempt, and says whether it is let in. Rejects when Redis does not answer as it must.
   *
   * @param answer the challenge that it solved; or `unchecked` where the answer is yet to be checked: then an attempt that needs it has
   * this outcome, and is not counted
   * @param id of an attempt that is counted elsewhere as well [a new one]
   * @param together counts it for its address by the same command, and throws the refusal
   */
  async letIn(
    account: string,
    device: string | null,
    answer?: Solved | 'unchecked',
    id = randomBytes(ID_BYTES).toString('base64url'),
    together: ScriptInput & { counted?(answer: unknown): void } = { keys: [], args: [] },
  ): Promise<LetIn> {
    const { perMinute, perAccount, perDevice, ticketTtlMs } = this.#bounds
    const solved = answer === 'unchecked' ? undefined : answer
    const lifeMs = solved === undefined ? 0 : Math.ceil(solved.leftMs) + CHALLENGE_TOLERANCE_MS
    const [ofAccount, ofDevice] = this.#countsOf(account, device)
    const keys = [
      ...together.keys,
      ...[this.#key('limit:account', account), ...ofAccount],
      ...[this.#key('limit:device', device), ...ofDevice],
      this.#key('challenge', solved?.id),
    ]
    const args = [
      ...together.args,
      ...[device ?? '', answer === 'unchecked' ? -1 : lifeMs, perMinute, perAccount, perDevice],
      ...[Math.ceil(perAccount * UNDELAYED_SHARE), id, ticketTtlMs + UNTIL_ADDED_MS],
    ]
    const [ofAddress, counted] = toList(
      await this.#atHome(account, ({ connection }) => beginAttempt(connection, keys, ...args)),
    )
    together.counted?.(ofAddress)
    const [outcome, failures, waitMs, requests] = toList(counted)
    if (!isOutcome(outcome)) throw new UnexpectedReply('Redis gave no outcome of an attempt')
    return { id, outcome, failures: toCount(failures), waitMs: toCount(waitMs), requests: toCount(requests) }
  }

  /**
   * Settles an attempt. A right password ends what failed before (NIST SP 800-63B-4, 3.2.2).
   *
   * @param challengeId the challenge by which it was let in
   * @param together ends it for its address by the same command
   */
  async settle(
    { id, account, device }: Attempter,
    settled: Settled,
    challengeId?: string,
    together: ScriptInput = { keys: [], args: [] },
  ): Promise<void> {
    const keys = [...together.keys, ...this.#countsOf(account, device).flat(), this.#key('challenge', challengeId)]
    const args = [...together.args, id, settled, device ?? '', this.#bounds.deviceTtlS * 1_000, ...MEMORY_MS]
    await this.#atHome(account, ({ connection }) => endAttempt(connection, keys, ...args))
  }

  #key(kind: string, name: string | null = null): string {
    return `${this.#queuePrefix}:${kind}:${name ?? '-'}`
  }

  /** The failures and the pending attempts: of the account, and of its known devices. */
  #countsOf(account: string, device: string | null): [ofAccount: string[], ofDevice: string[]] {
    return [
      [this.#key('guesses', account), this.#key('guesses:pending', account)],
      [this.#key('guesses:devices', account), this.#key('guesses:device-pending', device)],
    ]
  }

  /** Where an account is counted: together with the requests that the limit of its account counts. */
  #atHome(account: string, ask: (one: CountingRedis) => Promise<unknown>): Promise<unknown> {
    return atHome(this.#key('limit:account', account), this.#redis, ask)
  }
}

function isOutcome(value: unknown): value is AttemptOutcome {
  return attemptOutcomes.some((outcome) => outcome === value)
}
