/**
 * Counts of attempts in Redis, shared by all gateways. An attempt counts as failed from the moment that it is let in, until it succeeds or
 * turns out to cost no hash: of a hundred at once no more get in than of a hundred in turn.
 */
import { atHome, type CountingRedis } from '../limits/shared-counts.js'
import { type AttemptOutcome, defineAttemptScripts } from './attempt-scripts.js'
import type { KnownDevice } from './device-token.js'
import { forgottenKey } from './forgotten-devices.js'
import type { Solved } from './proof-of-work.js'

/** The share of the allowed failures that causes no delay: people who forgot their password try several. */
const UNDELAYED_SHARE = 0.1
/**
 * How long one, two, three and more failures are remembered, in milliseconds. Anyone can fail on any address, so that a single failure must
 * not stay in Redis for long; and each took a hash.
 */
const HOUR_MS = 3_600_000
const MEMORY_MS = [6 * HOUR_MS, 24 * HOUR_MS, 96 * HOUR_MS, 720 * HOUR_MS]
/** A used challenge is remembered for so long after its expiry, in milliseconds: clocks of gateways differ. */
const CLOCK_TOLERANCE_MS = 180_000

/** A known device, with the name of its account by the key that signed its token. */
export type DeviceOfAccount = Pick<KnownDevice, 'id' | 'issuedAtMs'> & { account: string }

/** The account of a login, and the known device that it comes from; both as named in Redis. */
export interface Attempter {
  account: string
  device: string | null
}

export interface LetIn {
  outcome: AttemptOutcome
  /** Consecutive failures before this attempt: of all unknown devices of the account together, or of the known device. */
  failures: number
  /** The time until the next attempt is allowed, in milliseconds. */
  waitMs: number
  /** This minute, this one included. */
  requests: number
}

export interface AttemptBounds {
  perMinute: number
  /** Consecutive failures of unknown devices together, and of one known device. */
  perAccount: number
  perDevice: number
  deviceTtlS: number
}

export function createAttempts(redis: readonly CountingRedis[], queuePrefix: string, bounds: AttemptBounds) {
  for (const { connection } of redis) defineAttemptScripts(connection)
  const key = (kind: string, name: string | null) => `${queuePrefix}:${kind}:${name ?? '-'}`
  /** Where an account is counted: together with the requests that the limit of its account counts. */
  const atHomeOf = <Answer>(account: string, ask: (connection: CountingRedis['connection']) => Promise<Answer>) =>
    atHome(key('limit:account', account), redis, ({ connection }) => ask(connection))
  const failuresOf = ({ account, device }: Attempter) =>
    [key('guesses', account), key('guesses:device', device)] as const

  return {
    /**
     * Counts an attempt, and says whether it is let in.
     *
     * @param answer the challenge that it solved; or `unchecked` where the answer is yet to be checked: then an attempt that needs it has
     * this outcome, and is not counted
     */
    async letIn(account: string, device: DeviceOfAccount | null, answer?: Solved | 'unchecked'): Promise<LetIn> {
      const attempter = { account, device: device?.id ?? null }
      const [ofAccount, ofDevice] = failuresOf(attempter)
      const solved = answer === 'unchecked' ? undefined : answer
      const lifeMs = solved === undefined ? 0 : Math.ceil(solved.leftMs) + CLOCK_TOLERANCE_MS
      const [outcome, failures, waitMs, requests] = await atHomeOf(account, (connection) =>
        connection.letAttemptIn(
          key('limit:account', account),
          ofAccount,
          key('limit:device', attempter.device),
          ofDevice,
          key('challenge', solved?.id ?? null),
          forgottenKey(queuePrefix, device?.account ?? account),
          forgottenKey(queuePrefix, account),
          device?.issuedAtMs ?? 0,
          answer === 'unchecked' ? -1 : lifeMs,
          bounds.perMinute,
          bounds.perAccount,
          bounds.perDevice,
          Math.ceil(bounds.perAccount * UNDELAYED_SHARE),
          bounds.deviceTtlS * 1_000,
          ...MEMORY_MS,
        ),
      )
      return { outcome, failures, waitMs, requests }
    },

    /** A right password: what failed before does not count any more (NIST SP 800-63B-4, 3.2.2). */
    async succeeded(attempter: Attempter): Promise<void> {
      const [ofAccount, ofDevice] = failuresOf(attempter)
      const counted = attempter.device === null ? ofAccount : ofDevice
      await atHomeOf(attempter.account, (connection) => connection.del(counted))
    },

    /**
     * An attempt that was let in and was never hashed.
     *
     * @param challengeId the challenge by which it was let in
     */
    async takeBack(attempter: Attempter, challengeId?: string): Promise<void> {
      const [ofAccount, ofDevice] = failuresOf(attempter)
      const ofChallenge = key('challenge', challengeId ?? null)
      const isKnown = attempter.device === null ? 0 : 1
      await atHomeOf(attempter.account, (connection) =>
        connection.takeAttemptBack(ofAccount, ofDevice, ofChallenge, isKnown, challengeId === undefined ? 0 : 1),
      )
    },
  }
}
