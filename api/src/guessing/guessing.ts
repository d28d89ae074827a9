/**
 * Holds guessing back and locks nobody out. A device that has logged in to an account is counted by itself. Unknown devices share a number
 * of consecutive failures for each account (NIST SP 800-63B-4, 3.2.2), with growing delays. Then each attempt needs a challenge. A solved
 * challenge also replaces a delay. Nothing here asks whether an account exists.
 */
import type { FastifyBaseLogger } from 'fastify'
import type { GatewayMetrics } from '../http/metrics.js'
import type { AddressAttempts, CountedAttempt, CountedTogether } from '../limits/address-attempts.js'
import { storedNetworkOf } from '../limits/client-network.js'
import type { Count } from '../limits/request-counts.js'
import { ApiError } from '../problems/errors.js'
import type { createAttempts, LetIn, Settled } from './attempts.js'
import type { Challenges } from './challenges.js'
import type { DeviceTokens } from './device-token.js'
import type { Answerer } from './outside-challenge.js'
import type { ProbedNetworks } from './probed-networks.js'
import type { Solved } from './proof-of-work.js'
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

export interface Login {
  account: string
  deviceToken: string
  challengeAnswer: string
  client: Answerer
  /** Counts an attempt of no known device for the address that it comes from, once. Throws `too_many_requests`. */
  countForAddress(): Promise<CountedAttempt>
  /** The same, counted by the command that counts it for its account; undefined where it has been counted, or one command cannot. */
  countTogether(): CountedTogether | undefined
}

export interface LetInAttempt {
  readonly attempt: Attempt
  /** Whether it waits until others of its address are known to be no guesses. */
  readonly isBehind: boolean
  /**
   * Compares the generation of a known device with the account's, undefined where there is no account. A device of another generation is
   * unknown: it is counted as such, and refused as such.
   */
  confirm(generation: string | undefined): Promise<void>
  /** Where nobody learned anything: no job was added, it was cancelled in time, or the gateway failed. Further calls do nothing. */
  takeBack(): void
}

export interface Guessing {
  /** Whether one command counts a login for its address and for its account. */
  isTogether: boolean
  /**
   * Counts a login before any other work. Throws `too_many_requests` or `challenge_required`, with a challenge; `tellLimit` is called when
   * the limit of a minute refuses. An answer to a challenge is checked only where the login needs it. Throws `unavailable` for an attempt
   * that cannot be counted: while Redis is away nothing is hashed anyway.
   */
  letIn(login: Login, tellLimit: (max: number, count: Count) => void): Promise<LetInAttempt>
  /**
   * The token of the device from now on.
   *
   * @param generation of the account whose password was verified
   */
  issueDeviceToken(attempt: Attempt, generation: string): string
  /** After a right password. */
  succeeded(attempt: Attempt): void
  /** After a wrong password, or one for no account. */
  failed(attempt: Attempt): void
  /** Whether the job of a ticket may be hashed by now. */
  mayBeHashed(attempt: Attempt): Promise<boolean>
  /** When the ticket of an attempt has ended without an answer. */
  unanswered(attempt: Attempt): void
  /**
   * When the ticket of an attempt stays pending without an answer. Its address no longer counts it: {@link mayBeHashed} does, when its
   * client comes again. Its account does: it may still be hashed.
   */
  setAside(attempt: Attempt): void
  /** The password of a failure that was answered while its request was held. */
  failedBy(password: string, attempt: Attempt): void
}

export interface GuessingDeps {
  attempts: ReturnType<typeof createAttempts>
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

export function createGuessing(deps: GuessingDeps): Guessing {
  const { attempts, addresses, challenges, devices, perMinute, perAccount, metrics, log } = deps
  const isOff = perMinute === 0 && perAccount === 0
  const isTogether = addresses.isTogether && !isOff
  /** Logs the failure of a Redis command that no answer awaits. A lost command leaves a count too high. */
  function inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => log.debug({ err: error }, 'an attempt could not be counted'))
  }

  function settle({ id, account, device, network }: Attempt, settled: Settled, challengeId?: string): void {
    const ofAddress = { id, network }
    const hasFailed = settled === 'failed'
    const together = device === null && addresses.isTogether && perAccount > 0
    if (device === null && !together) addresses.end(ofAddress, hasFailed)
    if (perAccount === 0) return
    const attempter = { id, account: deps.nameOf(account), device }
    const end = together ? addresses.endTogether(ofAddress, hasFailed) : undefined
    inBackground(attempts.settle(attempter, settled, challengeId, end))
  }

  function refusal(account: string, { outcome, failures, waitMs }: LetIn): ApiError {
    const isChallenged = perAccount > 0 && outcome !== 'device_too_many'
    const challenge = isChallenged ? { challenge: challenges.issue(account, failures - perAccount) } : {}
    if (outcome === 'challenge')
      return new ApiError('challenge_required', { reason: 'guesses_challenged', ...challenge })
    const reason = outcome === 'delayed' ? 'guesses_delayed' : 'account_limit'
    return new ApiError('too_many_requests', { reason, retryAfterS: secondsOf(waitMs), ...challenge })
  }

  return {
    isTogether,

    async letIn({ account, deviceToken, challengeAnswer, client, countForAddress, countTogether }, tellLimit) {
      const network = storedNetworkOf(client.address)
      const known = perAccount === 0 ? null : devices.read(account, deviceToken)
      const isAnswered = challengeAnswer !== '' && perAccount > 0
      let ofAddress: CountedAttempt | undefined
      async function count(device: string | null, answer?: Solved | 'unchecked', together?: CountedTogether) {
        try {
          const counted = (text: unknown) => {
            ofAddress = together?.counted(text)
          }
          const ofBoth = together && { ...together, counted }
          return await attempts.letIn(deps.nameOf(account), device, answer, together?.id ?? ofAddress?.id, ofBoth)
        } catch (error) {
          if (error instanceof ApiError) throw error
          throw new ApiError('unavailable', { cause: error, retryAfterS: 1 })
        }
      }

      /** Counts an attempt of a device, or of an unknown one. Throws its refusal. */
      async function attemptOf(device: string | null): Promise<{ attempt: Attempt; challengeId?: string | undefined }> {
        // A request that the limit of its address refuses does not count for its account.
        const together = device === null && isTogether ? countTogether() : undefined
        if (device === null && together === undefined) ofAddress = await countForAddress()
        if (isOff) return { attempt: { id: ofAddress?.id ?? '', account, device, network } }
        let counted = await count(device, isAnswered ? 'unchecked' : undefined, together)
        let solved: Solved | undefined
        if (counted.outcome === 'unchecked') {
          solved = await challenges.check(account, challengeAnswer, client)
          counted = await count(device, solved)
        }
        const { id, outcome, requests, waitMs } = counted
        if (outcome === 'too_many' || outcome === 'device_too_many')
          tellLimit(perMinute, { count: requests, resetS: secondsOf(waitMs) })
        if (outcome !== 'known' && outcome !== 'unknown' && outcome !== 'solved') throw refusal(account, counted)
        // Whether the token of a known device is of this account's present password shows later: it is counted then, once.
        if (outcome !== 'known') metrics.loginAttempts.inc({ device: outcome })
        // A device that failed too often is as good as unknown, and only its failures count for its address. A challenge that let nobody in was used before, and must stay used.
        const attempt = { id, account, device: outcome === 'known' ? device : null, network }
        return { attempt, challengeId: outcome === 'solved' ? solved?.id : undefined }
      }

      let letIn = await attemptOf(known?.id ?? null)
      let isTakenBack = false
      function takeBack(): void {
        if (!isTakenBack) settle(letIn.attempt, 'nothing', letIn.challengeId)
        isTakenBack = true
      }
      return {
        get attempt() {
          return letIn.attempt
        },
        get isBehind() {
          return ofAddress?.isBehind === true
        },
        async confirm(generation) {
          if (letIn.attempt.device === null) return
          if (known?.generation === generation) return metrics.loginAttempts.inc({ device: 'known' })
          takeBack()
          letIn = await attemptOf(null)
          isTakenBack = false
        },
        takeBack,
      }
    },

    issueDeviceToken: ({ account }, generation) => devices.issue(account, generation),

    mayBeHashed: async ({ id, network, device }) => device !== null || (await addresses.letIn({ id, network })),

    succeeded: (attempt) => settle(attempt, 'succeeded'),

    unanswered: (attempt) => settle(attempt, 'nothing'),

    setAside({ id, network, device }) {
      if (device === null) addresses.end({ id, network }, false)
    },

    failed(attempt) {
      const { account, device, network: from } = attempt
      settle(attempt, 'failed')
      if (isOff || device !== null) return
      const counted = deps.networks.failed(deps.nameOf(account), from).then((networks) => {
        for (const network of networks) {
          metrics.attacksNoticed.inc({ kind: 'network' })
          log.warn({ network }, 'many accounts are tried in vain from one network')
        }
      })
      inBackground(counted)
    },

    failedBy(password, { account, device }) {
      if (isOff || device !== null || !deps.sprayed.failed(password, account)) return
      metrics.attacksNoticed.inc({ kind: 'password' })
      log.warn('one password is tried in vain on many accounts')
    },
  }
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}
