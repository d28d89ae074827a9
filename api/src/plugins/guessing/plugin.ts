/** Protection against password guessing: hooks count a login before admission, and settle it. */
import type { Keyring } from '@spillway/queue/queue-client'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayConfig } from '../../config.js'
import type { CountingRedis } from '../counts.js'
import type { LimitRequest } from '../limits.js'
import type { GatewayMetrics } from '../metrics.js'
import { ProbedNetworks, SprayedPasswords } from './attacks.js'
import { Attempts } from './attempts.js'
import { OutsideChallenge, ProofOfWork } from './challenges.js'
import { type DeviceTokens, deviceTokenOf } from './device-token.js'
import { Guessing, type LetInAttempt } from './guessing.js'

interface GuessingPluginOptions {
  config: GatewayConfig
  keyring: Keyring
  devices: DeviceTokens
  redis: readonly CountingRedis[]
  /** Redis's clock. */
  nowMs(): number
  metrics: GatewayMetrics
  log: FastifyBaseLogger
}

export const guessingPlugin = fp(
  async (app: FastifyInstance, options: GuessingPluginOptions) => {
    const { config, keyring, devices, redis, nowMs, metrics, log } = options
    const { CHALLENGE_VERIFY_URL: verifyUrl, CHALLENGE_SECRET: secret, CHALLENGE_SITE_KEY: siteKey } = config
    const attempts = new Attempts(config, redis, keyring)
    const guessing = new Guessing({
      ...{ config, attempts, devices, keyring, metrics, log },
      challenges:
        verifyUrl === ''
          ? new ProofOfWork(keyring, { bits: config.CHALLENGE_BITS, nowMs })
          : new OutsideChallenge({ verifyUrl, secret, siteKey }),
      networks: new ProbedNetworks(redis, config.QUEUE_PREFIX),
      sprayed: new SprayedPasswords(),
    })

    /** Counts a login whose body was not valid, or did not arrive. Throws `too_many_requests`. */
    async function countInvalid(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      if (request.isUncounted !== true) return
      request.isUncounted = false
      await attempts.countRequest(request.ip, reply)
    }

    app.decorate('guessing', guessing)
    app.decorate('limitNetwork', (request, reply) => attempts.countRequest(request.ip, reply))
    app.decorateRequest('login')
    app.decorateRequest('isUncounted')
    app.decorate('refuseLoginOverLimit', async (request, reply) => {
      // Whether it is known to this account shows in the body.
      if (devices.recognize(deviceTokenOf(request.headers)) !== undefined) return
      attempts.refuseRemembered(request.ip, reply)
      request.isUncounted = true
    })
    app.decorate('letLoginIn', async (request, reply) => {
      if (request.validationError !== undefined) {
        await countInvalid(request, reply)
        throw request.validationError
      }
      request.login = await guessing.letIn(request, reply)
    })
    app.decorate('endLoginAttempt', async (request, reply) => {
      const { login, jobId, clientGone } = request
      const hasFailed = reply.statusCode >= 500
      // Headers of a limit are sent with the next request.
      if (login === undefined) return hasFailed ? undefined : countInvalid(request, reply).catch(() => undefined)
      if (jobId === undefined || (hasFailed && !clientGone.aborted)) login.takeBack()
      else if (reply.statusCode === 401) guessing.failedHeld(request, login.attempt)
    })
  },
  { name: 'guessing' },
)

declare module 'fastify' {
  interface FastifyInstance {
    guessing: Guessing
    /** `onRequest` hook that counts a request that is no login against the limit of its address. */
    limitNetwork: LimitRequest
    /** `onRequest` hook: refuses logins of addresses over their limit, except known devices'. */
    refuseLoginOverLimit(request: FastifyRequest, reply: FastifyReply): Promise<void>
    /** `preHandler` hook that counts a login. Needs `attachValidation`: invalid ones count, too. */
    letLoginIn(request: FastifyRequest, reply: FastifyReply): Promise<void>
    /**
     * `onSend` hook of the same: unlike `onResponse`, it is also called for clients that are gone.
     * The conductor takes back an attempt whose job was cancelled in time.
     */
    endLoginAttempt(request: FastifyRequest, reply: FastifyReply): Promise<void>
  }
  interface FastifyRequest {
    login?: LetInAttempt
    /** Whether a login is yet to be counted for its address: its body is not known to be valid. */
    isUncounted?: boolean
  }
}
