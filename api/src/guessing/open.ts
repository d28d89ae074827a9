/** Builds the protection against password guessing from the configuration. */
import type { Keyring } from '@spillway/queue/queue-client'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { GatewayConfig } from '../config.js'
import type { GatewayMetrics } from '../http/metrics.js'
import type { CountingRedis } from '../limits/shared-counts.js'
import { createAttempts } from './attempts.js'
import { createChallenges } from './challenges.js'
import type { DeviceTokens } from './device-token.js'
import { createGuessing, type Guessing } from './guessing.js'
import { guessingPlugin } from './plugin.js'
import { createProbedNetworks } from './probed-networks.js'
import { createSprayedPasswords } from './sprayed-passwords.js'

export async function openGuessing(
  app: FastifyInstance,
  config: GatewayConfig,
  deps: {
    keyring: Keyring
    devices: DeviceTokens
    redis: readonly CountingRedis[]
    accountNameOf(account: string): string
    /** Redis's clock. */
    nowMs(): number
    metrics: GatewayMetrics
    log: FastifyBaseLogger
  },
): Promise<Guessing> {
  const { keyring, devices, redis, accountNameOf, nowMs, metrics, log } = deps
  const deviceTtlS = config.DEVICE_TTL_S
  const bounds = { perMinute: config.LIMIT_PER_ACCOUNT, perAccount: config.GUESSES_PER_ACCOUNT }
  const guessing = createGuessing({
    attempts: createAttempts(redis, config.QUEUE_PREFIX, {
      ...bounds,
      perDevice: config.GUESSES_PER_DEVICE,
      deviceTtlS,
      ticketTtlMs: config.TICKET_TTL_MS,
    }),
    challenges: createChallenges(keyring, {
      bits: config.CHALLENGE_BITS,
      nowMs,
      verifyUrl: config.CHALLENGE_VERIFY_URL,
      secret: config.CHALLENGE_SECRET,
      siteKey: config.CHALLENGE_SITE_KEY,
    }),
    addresses: app.addressAttempts,
    devices,
    networks: createProbedNetworks(redis, config.QUEUE_PREFIX),
    sprayed: createSprayedPasswords(),
    nameOf: accountNameOf,
    ...bounds,
    metrics,
    log,
  })
  await app.register(guessingPlugin, { guessing, devices })
  return guessing
}
