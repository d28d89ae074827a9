/** Chooses what hashes, by the options of an application. */
import { createLoadState } from '../passwords/load-state.js'
import { refuseGuessableKeys } from '../protocol/key-list.js'
import type { HashPolicy } from '../protocol/policy.js'
import { parseKeyring, SEAL_KEYS } from '../protocol/seal.js'
import { parseShards } from '../redis/shards.js'
import type { Backend } from './backend.js'
import { openBesideBackend } from './beside/backend.js'
import { openFallback } from './fallback.js'
import type { QueueOptions } from './queue.js'
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
    openBesideBackend({ program, settings: { policy, concurrency }, inProcess: options.inProcess, log })
  wholeNumber('concurrency', options.concurrency ?? 1, 1, CONCURRENCY_MAX)
  if (!redis && !sealKeys) return openProcess(options.concurrency)
  if (!redis || !sealKeys)
    throw new TypeError('redis and sealKeys belong together: give both, or neither to hash beside')
  wholeNumber('fallbackConcurrency', fallbackConcurrency, 0, CONCURRENCY_MAX)
  const queue = openQueue({ redis, sealKeys, prefix, waitMs, traceparent, log })
  if (fallbackConcurrency === 0) return queue
  return openFallback({ queue, openProcess: () => openProcess(fallbackConcurrency), log })
}

/** Its code is loaded for applications that have a queue alone: it takes longer to load than many a program runs. */
function openQueue(options: QueueOptions): Backend {
  refuseGuessableKeys(SEAL_KEYS, options.sealKeys)
  parseKeyring(options.sealKeys)
  parseShards(options.redis)
  let opened: Backend | undefined
  const opening = import('./queue.js').then(({ openQueueBackend }) => (opened = openQueueBackend(options)))
  // The calls tell.
  opening.catch(() => undefined)
  const unknown = createLoadState().current()
  return {
    by: 'workers',
    load: () => opened?.load() ?? unknown,
    predictedWaitMs: () => opened?.predictedWaitMs() ?? Number.POSITIVE_INFINITY,
    whenKnown: async (waitMs) => (await opening).whenKnown(waitMs),
    perform: async (name, request, perform) => (await opening).perform(name, request, perform),
    begin: async (request, lifeMs) => (await opening).begin(request, lifeMs),
    follow: async (job, options) => (await opening).follow(job, options),
    take: async (job) => (await opening).take(job),
    close: async () => (await opening).close(),
  }
}
