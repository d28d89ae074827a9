/**
 * Holds guessing back and locks nobody out. A device that has logged in to an account is counted by itself. Unknown devices share a number
 * of consecutive failures for each account (NIST SP 800-63B-4, 3.2.2), with growing delays; then each attempt takes a challenge, which
 * also spares the wait before that. Nothing here asks whether an account exists.
 */
import type { FastifyBaseLogger } from 'fastify'
import type { GatewayMetrics } from '../http/metrics.js'
import { storedNetworkOf } from '../limits/client-network.js'
import type { Count } from '../limits/request-counts.js'
import { ApiError } from '../problems/errors.js'
import type { Attempter, createAttempts, LetIn } from './attempts.js'
import type { Challenges } from './challenges.js'
import type { DeviceTokens } from './device-token.js'
import type { ForgottenDevices } from './forgotten-devices.js'
import type { Answerer } from './outside-challenge.js'
import type { ProbedNetworks } from './probed-networks.js'
import type { Solved } from './proof-of-work.js'
import type { SprayedPasswords } from './sprayed-passwords.js'

/** An attempt that was let in, as tickets carry it. */
export interface Attempt {
  /** The digest of the address. */
  account: string
  /** The device whose count it is; null for that of unknown ones. */
  device: string | null
  /** Where the login came from: whoever redeems its ticket may come from elsewhere. */
  network: string
}

export interface Login {
  account: string
  deviceToken: string
  challengeAnswer: string
  client: Answerer
}

export interface LetInAttempt {
  attempt: Attempt
  /** Where nothing was hashed: no job was submitted, or it was cancelled in time. Further calls do nothing. */
  takeBack(): void
}

export interface Guessing {
  /**
   * Counts a login before anything is done for it. Throws `too_many_requests` or `challenge_required`, with a challenge; `tellLimit` is
   * called when the limit of a minute refuses. An answer to a challenge is checked only where the login needs it. While Redis is
   * unreachable it lets everything in: nothing is hashed then.
   */
  letIn(login: Login, tellLimit: (max: number, count: Count) => void): Promise<LetInAttempt>
  /**
   * The token of the device from now on. Issue it before the session is opened: if the password is changed between the two, the device is
   * forgotten with the others.
   */
  issueDeviceToken(attempt: Attempt): string
  /** After a right password. */
  succeeded(attempt: Attempt): void
  /**
   * When a password was changed, or an address got or lost its account: whoever had the account before may hold tokens of devices. They are
   * unknown from then on. Never rejects: what Redis does not take is logged, and retried.
   */
  forgetDevices(...accounts: string[]): Promise<void>
  /** After a wrong password, or one for no account. */
  failed(attempt: Attempt): void
  /** The password of a failure that was answered while its request was held. */
  failedBy(password: string, attempt: Attempt): void
}

export interface GuessingDeps {
  attempts: ReturnType<typeof createAttempts>
  challenges: Challenges
  devices: DeviceTokens
  forgotten: ForgottenDevices
  networks: ProbedNetworks
  sprayed: SprayedPasswords
  /** The name of an account in Redis. */
  nameOf(account: string): string
  /** Its names by each seal key. */
  namesByKey(account: string): string[]
  /** Requests a minute and failures of unknown devices; 0 for no bound. */
  perMinute: number
  perAccount: number
  metrics: Pick<GatewayMetrics, 'loginAttempts' | 'attacksNoticed'>
  log: FastifyBaseLogger
}

export function createGuessing(deps: GuessingDeps): Guessing {
  const { attempts, challenges, devices, perMinute, perAccount, metrics, log } = deps
  const isOff = perMinute === 0 && perAccount === 0
  const attempterOf = ({ account, device }: Attempt): Attempter => ({ account: deps.nameOf(account), device })

  /** Logs the failure of a Redis command that no answer awaits. A lost command leaves a count too high. */
  function inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => log.debug({ err: error }, 'an attempt could not be counted'))
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
    async letIn({ account, deviceToken, challengeAnswer, client }, tellLimit) {
      const device = perAccount === 0 ? null : devices.read(account, deviceToken)
      const network = storedNetworkOf(client.address)
      const nothing = { attempt: { account, device: device?.id ?? null, network }, takeBack() {} }
      if (isOff) return nothing
      const known = device && { ...device, account: deps.namesByKey(account)[device.keyIndex] ?? '' }
      const isAnswered = challengeAnswer !== '' && perAccount > 0
      const count = (answer?: Solved | 'unchecked') =>
        attempts.letIn(deps.nameOf(account), known, answer).catch(() => undefined)
      let counted = await count(isAnswered ? 'unchecked' : undefined)
      let solved: Solved | undefined
      if (counted?.outcome === 'unchecked') {
        solved = await challenges.check(account, challengeAnswer, client)
        counted = await count(solved)
      }
      if (counted === undefined) return nothing
      const { outcome, requests, waitMs } = counted
      if (outcome === 'too_many' || outcome === 'device_too_many')
        tellLimit(perMinute, { count: requests, resetS: secondsOf(waitMs) })
      if (outcome !== 'known' && outcome !== 'unknown' && outcome !== 'solved') throw refusal(account, counted)
      metrics.loginAttempts.inc({ device: outcome })
      // A device that failed too often is as good as unknown.
      const attempt = { account, device: outcome === 'known' && device !== null ? device.id : null, network }
      // A challenge that let nobody in was used before, and must stay used.
      const challengeId = outcome === 'solved' ? solved?.id : undefined
      let isTakenBack = false
      return {
        attempt,
        takeBack() {
          if (!isTakenBack) inBackground(attempts.takeBack(attempterOf(attempt), challengeId))
          isTakenBack = true
        },
      }
    },

    issueDeviceToken: ({ account }) => devices.issue(account),

    succeeded(attempt) {
      if (!isOff) inBackground(attempts.succeeded(attempterOf(attempt)))
    },

    async forgetDevices(...accounts) {
      await Promise.all(accounts.flatMap(deps.namesByKey).map((name) => deps.forgotten.forget(name)))
    },

    failed({ account, device, network: from }) {
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
