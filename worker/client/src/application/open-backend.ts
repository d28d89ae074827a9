/** Chooses what hashes, by the options of an application. */
import type { HashPolicy } from '../protocol/policy.js'
import type { Backend } from './backend.js'
import { openBesideBackend } from './beside/backend.js'
import { openFallback } from './fallback.js'
import { openQueueBackend } from './queue.js'
import type { Logger, PasswordsOptions } from './types.js'
import { CONCURRENCY_MAX, wholeNumber } from './whole-number.js'

export const consoleLog: Logger = {
  error: (facts, message) => console.error(`spillway: ${message}`, facts),
  warn: (facts, message) => console.warn(`spillway: ${message}`, facts),
  info: () => undefined,
  debug: () => undefined,
}

/** @param program the process beside the application, which hashes where there is no queue, or while the queue does not answer */
export function openBackend(
  program: URL,
  options: PasswordsOptions & { log: Logger },
  { waitMs, policy }: { waitMs: number; policy: HashPolicy },
): Backend {
  const { redis, sealKeys, queuePrefix: prefix, traceparent, fallbackConcurrency = 0, log } = options
  const openProcess = (concurrency: number | undefined) =>
    openBesideBackend({ program, settings: { policy, concurrency }, log })
  wholeNumber('concurrency', options.concurrency ?? 1, 1, CONCURRENCY_MAX)
  if (!redis && !sealKeys) return openProcess(options.concurrency)
  if (!redis || !sealKeys)
    throw new TypeError('redis and sealKeys belong together: give both, or neither to hash beside')
  wholeNumber('fallbackConcurrency', fallbackConcurrency, 0, CONCURRENCY_MAX)
  const queue = openQueueBackend({ redis, sealKeys, prefix, waitMs, traceparent, log })
  if (fallbackConcurrency === 0) return queue
  return openFallback({ queue, openProcess: () => openProcess(fallbackConcurrency), log })
}
