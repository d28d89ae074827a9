/** Opens the protection against password guessing, with the hooks of a login: counted before any work on it, and settled with its answer. */
import { presentMs } from '@spillway/queue/jobs/ticket'
import type { Keyring } from '@spillway/queue/queue-client'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayConfig } from '../../config.js'
import type { CountingRedis } from '../counts.js'
import { accountOfEmail } from '../counts.js'
import { type LimitRequest, sendLimitHeaders } from '../limits.js'
import type { GatewayMetrics } from '../metrics.js'
import { AddressAttempts, type CountedAttempt, type CountedTogether } from './address-attempts.js'
import { Attempts } from './attempts.js'
import { type DeviceTokens, deviceTokenOf } from './device-token.js'
import { Guessing, type LetInAttempt } from './guessing.js'
import { OutsideChallenge } from './outside-challenge.js'
import { ProbedNetworks } from './probed-networks.js'
import { ProofOfWork } from './proof-of-work.js'
import { SprayedPasswords } from './sprayed-passwords.js'

export interface GuessingOptions {
  config: GatewayConfig
  keyring: Keyring
  devices: DeviceTokens
  redis: readonly CountingRedis[]
  /** The name of an account in Redis. */
  accountNameOf(account: string): string
  /** Redis's clock. */
  nowMs(): number
  metrics: GatewayMetrics
  log: FastifyBaseLogger
}

export const guessingPlugin = fp(
  async (app: FastifyInstance, options: GuessingOptions) => {
    const { config, keyring, devices, redis, accountNameOf, nowMs, metrics, log } = options
    const { QUEUE_PREFIX: queuePrefix, TICKET_TTL_MS: ticketTtlMs, CHALLENGE_VERIFY_URL: verifyUrl } = config
    const bounds = { perMinute: config.LIMIT_PER_ACCOUNT, perAccount: config.GUESSES_PER_ACCOUNT }
    const ofDevices = { perDevice: config.GUESSES_PER_DEVICE, deviceTtlS: config.DEVICE_TTL_S }
    const addresses = new AddressAttempts({
      ...{ redis, queuePrefix, max: config.LIMIT_PER_ADDRESS, ticketTtlMs },
      presentMs: presentMs(config.LOGIN_WAIT_MS, ticketTtlMs),
    })
    const guessing = new Guessing({
      ...{ ...bounds, addresses, devices, nameOf: accountNameOf, metrics, log },
      attempts: new Attempts(redis, queuePrefix, { ...bounds, ...ofDevices, ticketTtlMs }),
      challenges:
        verifyUrl === ''
          ? new ProofOfWork(keyring, { bits: config.CHALLENGE_BITS, nowMs })
          : new OutsideChallenge({ verifyUrl, secret: config.CHALLENGE_SECRET, siteKey: config.CHALLENGE_SITE_KEY }),
      networks: new ProbedNetworks(redis, queuePrefix),
      sprayed: new SprayedPasswords(),
    })
    app.decorate('guessing', guessing)
    app.decorate('limitAddress', (request, reply) => addresses.count(request.ip, reply))
    app.decorateRequest('login')
    app.decorateRequest('ofAddress')
    app.decorateRequest('isUncounted')

    async function countForAddress(request: FastifyRequest, reply: FastifyReply) {
      request.ofAddress ??= await addresses.begin(request.ip, reply)
      return request.ofAddress
    }

    function countTogether(request: FastifyRequest, reply: FastifyReply): CountedTogether | undefined {
      if (request.ofAddress !== undefined) return undefined
      request.isUncounted = false
      const together = addresses.beginTogether(request.ip, reply)
      const counted = (answer: unknown) => {
        request.ofAddress = together.counted(answer)
        return request.ofAddress
      }
      return { ...together, counted }
    }

    /** Counts a request that its body makes invalid as a login. Throws `too_many_requests`. */
    async function countInvalid(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      if (request.isUncounted !== true) return
      request.isUncounted = false
      await addresses.count(request.ip, reply)
    }

    app.decorate('countLogin', async (request, reply) => {
      // Whether it is known to this account shows in the body.
      const isOfDevice = devices.recognize(deviceTokenOf(request.headers)) !== undefined
      if (isOfDevice) return
      if (!guessing.isTogether) return void (await countForAddress(request, reply))
      addresses.refuseRemembered(request.ip, reply)
      request.isUncounted = true
    })

    app.decorate('letLoginIn', async (request, reply) => {
      const { headers, ip, clientGone } = request
      if (request.validationError !== undefined) {
        await countInvalid(request, reply)
        throw request.validationError
      }
      const answer = headers['spillway-challenge']
      request.login = await guessing.letIn({
        account: accountOfEmail(fieldOf(request, 'email')),
        deviceToken: deviceTokenOf(headers),
        challengeAnswer: typeof answer === 'string' ? answer : '',
        countForAddress: () => countForAddress(request, reply),
        countTogether: () => countTogether(request, reply),
        client: { address: ip, gone: clientGone, whilePaused: (wait) => whilePaused(request, wait) },
        tellLimit: (max, count) => sendLimitHeaders(reply, max, count),
      })
    })

    app.decorate('settleLogin', async (request, reply) => {
      const { login, ofAddress, jobId, clientGone } = request
      if (login === undefined) {
        // What it says is sent with the next request.
        if (reply.statusCode < 500) await countInvalid(request, reply).catch(() => undefined)
        if (ofAddress !== undefined) addresses.end(ofAddress, reply.statusCode < 500)
        return
      }
      const hasFailed = reply.statusCode >= 500 && !clientGone.aborted
      if (jobId === undefined || hasFailed) login.takeBack()
      else if (reply.statusCode === 401) guessing.failedBy(fieldOf(request, 'password'), login.attempt)
    })
  },
  { name: 'guessing' },
)

/** Awaits what is not this gateway's own work. */
async function whilePaused<T>({ work }: FastifyRequest, wait: () => Promise<T>): Promise<T> {
  work?.pause()
  try {
    return await wait()
  } finally {
    work?.resume()
  }
}

/** A field of a body that was validated. */
function fieldOf({ body }: FastifyRequest, name: string): string {
  const field = typeof body === 'object' && body !== null ? Object.getOwnPropertyDescriptor(body, name)?.value : ''
  return typeof field === 'string' ? field : ''
}

declare module 'fastify' {
  interface FastifyInstance {
    guessing: Guessing
    /** `onRequest` hook that counts a request that is no login against the limit of its address. */
    limitAddress: LimitRequest
    /**
     * `onRequest` hook that counts a login for its address, unless a known device makes it. Where a login is counted with its account, the
     * hook only refuses from memory.
     */
    countLogin(request: FastifyRequest, reply: FastifyReply): Promise<void>
    /** `preHandler` hook that counts a login, and refuses it. Needs `attachValidation`: an invalid one counts for its address. */
    letLoginIn(request: FastifyRequest, reply: FastifyReply): Promise<void>
    /**
     * `onSend` hook of the same: unlike `onResponse`, it is also called for clients that are gone. An attempt whose job was cancelled in
     * time is taken back where that is done, in operations/conductor.ts.
     */
    settleLogin(request: FastifyRequest, reply: FastifyReply): Promise<void>
  }
  interface FastifyRequest {
    /** A login that was let in. */
    login?: LetInAttempt
    /** A login that counts for its address. */
    ofAddress?: CountedAttempt
    /** A login that is yet to be counted for its address: its body is not known to be valid. */
    isUncounted?: boolean
  }
}
