/**
 * The queue, with a process beside the application that takes over while the queue does not answer: no worker is alive, or Redis is away.
 * Calls that wait are moved to it; hashing one twice does no harm. It hashes few at a time, and admission refuses what it could not do.
 */
import { setMaxListeners } from 'node:events'
import { withResolvers } from '@spillway/common/within'
import type { Backend } from './backend.js'
import { PasswordsError } from './passwords-error.js'
import type { Logger } from './types.js'

const CHECK_INTERVAL_MS = 250
/** Checks in a row without a worker before the process takes over: a worker that merely restarts is not replaced. */
const LACKING_CHECKS = 3
/**
 * Checks before the first reading of the queue that say nothing of its workers: code is loaded and Redis connected first, within 2 s.
 * Checks are counted instead of time, because loading that code may keep this process busy for a second.
 */
const FIRST_CHECKS = 8

export interface FallbackOptions {
  queue: Backend
  /** Starts the process; called at the first need. */
  openProcess(): Backend
  log: Logger
}

export function openFallback({ queue, openProcess, log }: FallbackOptions): Backend {
  let opened: Backend | undefined
  let checks = 0
  let lacking = 0
  let isRead = false
  /** Aborted while the process has taken over. */
  let takeover = heardByMany()

  const process = (): Backend => (opened ??= openProcess())
  const active = (): Backend => (takeover.signal.aborted ? process() : queue)

  function check(): void {
    const { known, slots } = queue.load()
    checks += 1
    isRead ||= known
    if (known && slots > 0) {
      lacking = 0
      if (!takeover.signal.aborted) return
      takeover = heardByMany()
      log.info({}, 'workers hash again')
      return
    }
    if (!isRead && checks <= FIRST_CHECKS) return
    lacking += 1
    if (takeover.signal.aborted || lacking < LACKING_CHECKS) return
    log.warn({ redisAnswers: known }, 'no worker answers: a process beside the application hashes')
    process()
    takeover.abort()
  }
  const timer = setInterval(check, CHECK_INTERVAL_MS)
  timer.unref()

  /** Undefined when the process has taken over, or Redis did not take the job. */
  async function byQueue(perform: (signal: AbortSignal) => ReturnType<Backend['perform']>, signal?: AbortSignal) {
    const moved = takeover.signal
    const stop = new AbortController()
    const abort = () => stop.abort()
    moved.addEventListener('abort', abort)
    signal?.addEventListener('abort', abort)
    try {
      return await perform(stop.signal)
    } catch (error) {
      if (error instanceof PasswordsError && error.code === 'queue_unavailable') return undefined
      throw error
    } finally {
      moved.removeEventListener('abort', abort)
      signal?.removeEventListener('abort', abort)
    }
  }

  return {
    get by() {
      return active().by
    },
    load: () => active().load(),
    predictedWaitMs: () => active().predictedWaitMs(),
    async whenKnown(waitMs) {
      if (takeover.signal.aborted) return await process().whenKnown(waitMs)
      const { signal } = takeover
      const { promise: taken, resolve } = withResolvers<unknown>()
      signal.addEventListener('abort', resolve, { once: true })
      await Promise.race([queue.whenKnown(waitMs), taken]).finally(() => signal.removeEventListener('abort', resolve))
    },
    async perform(name, request, { waitMs, signal }) {
      const endsAt = performance.now() + waitMs
      const left = () => Math.max(0, endsAt - performance.now())
      if (!takeover.signal.aborted) {
        const perform = (stop: AbortSignal) => queue.perform(name, request, { waitMs, signal: stop })
        const verdict = await byQueue(perform, signal)
        if (verdict !== undefined || signal?.aborted || left() === 0) return verdict
      }
      // Not awaited once it is known: admission counts a call as soon as it is let in.
      if (!process().load().known) await process().whenKnown(left())
      return await process().perform(name, request, { waitMs: left(), signal })
    },
    begin: (request, lifeMs) => active().begin(request, lifeMs),
    // The process alone knows what it has begun; another one of this application cannot answer it.
    follow: async (job, options) => {
      const followed = await opened?.follow(job, options)
      return followed === undefined || followed.isLost ? await queue.follow(job, options) : followed
    },
    take(job) {
      opened?.take(job)
      return queue.take(job)
    },
    async close() {
      clearInterval(timer)
      await Promise.all([queue.close(), opened?.close()])
    },
  }
}

/** Each call in hand listens. Node 20 and 22 would warn of a leak from the eleventh on. */
function heardByMany(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}
