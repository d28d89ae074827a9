/** Chooses what hashes, by the options of an application. */
import { createLoadState } from '../passwords/load-state.js'
import type { Load } from '../protocol/capacity.js'
import type { JobName, Requests, Verdict } from '../protocol/job.js'
import type { HashPolicy } from '../protocol/policy.js'
import type { JobRef } from '../protocol/reply.js'
import { parseKeyring, refuseGuessableKeys, SEAL_KEYS } from '../protocol/seal.js'
import { parseRedisServers } from '../redis/servers.js'
import { openBesideBackend } from './beside/backend.js'
import { openFallback } from './fallback.js'
import { CONCURRENCY_MAX, wholeNumber } from './options.js'
import type { QueueOptions } from './queue.js'
import type { Logger, PasswordsOptions } from './types.js'

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
  const queue = openQueue({ redis, sealKeys, prefix, waitMs, policy, traceparent, log })
  if (fallbackConcurrency === 0) return queue
  return openFallback({ queue, openProcess: () => openProcess(fallbackConcurrency), log })
}

/** Its code is loaded for applications that have a queue alone: it takes longer to load than many a program runs. */
function openQueue(options: QueueOptions): Backend {
  refuseGuessableKeys(SEAL_KEYS, options.sealKeys)
  parseKeyring(options.sealKeys)
  parseRedisServers(options.redis)
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
    // Not awaited once it is open: a call counts as soon as it is let in.
    perform: async (name, request, perform) => (opened ?? (await opening)).perform(name, request, perform),
    begin: async (request, lifeMs) => (await opening).begin(request, lifeMs),
    follow: async (job, options) => (await opening).follow(job, options),
    take: () => true,
    close: async () => (await opening).close(),
  }
}

/** What hashes for an application: the workers of a queue, or a process beside it. */
interface PerformOptions {
  waitMs: number
  signal: AbortSignal | undefined
}

/** Work that has a ticket. */
export interface Followed {
  /** Undefined while there is no answer. */
  verdict: Verdict | undefined
  /** Neither the work nor its verdict is here: there will be no answer. */
  isLost: boolean
  /** What is ahead of it, if that is known, and how long it has to wait, in milliseconds. */
  ahead: number | undefined
  waitMs: number
}

export interface Backend {
  readonly by: 'workers' | 'process'
  load(): Load
  predictedWaitMs(): number
  /** Resolves once the load is known, or after this time. Rejects when nothing can hash here. */
  whenKnown(waitMs: number): Promise<void>
  /**
   * Undefined when the time ran out or the signal fired first; the work is then cancelled if it has not begun. A worker that dropped it,
   * because its answer would have come too late, answers `expired`.
   */
  perform<Name extends JobName>(
    name: Name,
    request: Requests[Name],
    options: PerformOptions,
  ): Promise<Verdict | undefined>
  /** Begins work for a ticket, which lives for so long. */
  begin(request: Requests['verify'], lifeMs: number): Promise<JobRef>
  /** Waits for work that was begun, also elsewhere. The signal says that its client has left. */
  follow(job: JobRef, options: PerformOptions): Promise<Followed>
  /** Forgets the answer of a ticket. Where this process had it, true for one caller alone; what a queue has, the application marks. */
  take(job: JobRef): boolean
  close(): Promise<void>
}
