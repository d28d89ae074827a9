/**
 * The queue, with a process beside the application that takes over while the queue does not answer:
 * no worker is alive, or Redis is away. Calls that wait are moved to it; hashing one twice does no
 * harm. It hashes few at a time, and admission refuses what it could not do.
 */
import { setMaxListeners } from 'node:events'
import { withResolvers } from '@spillway/common/within'
import type { Load } from '@spillway/queue/wire/capacity'
import type { JobName, Requests, Verdict } from '@spillway/queue/wire/job'
import type { JobRef } from '@spillway/queue/wire/reply'
import type { Backend, Followed, PerformOptions } from './backend.js'
import { PasswordsError } from './passwords-error.js'
import type { Logger } from './types.js'

const CHECK_INTERVAL_MS = 250
/** Checks in a row without a worker before the takeover: a worker may merely restart. */
const LACKING_CHECKS = 3
/**
 * Checks before the first reading of the queue that say nothing of its workers: code is loaded and
 * Redis connected first. Checks, not time: loading may keep this process busy for a second.
 */
const FIRST_CHECKS = 8

export interface FallbackOptions {
  queue: Backend
  /** Starts the process; called at the first need. */
  openProcess(): Backend
  log: Logger
}

export class Fallback implements Backend {
  readonly #options: FallbackOptions
  readonly #queue: Backend
  readonly #timer: NodeJS.Timeout
  #opened: Backend | undefined
  #checks = 0
  #lacking = 0
  #isRead = false
  /** Aborted while the process has taken over. */
  #takeover = heardByMany()

  constructor(options: FallbackOptions) {
    this.#options = options
    this.#queue = options.queue
    this.#timer = setInterval(() => this.#check(), CHECK_INTERVAL_MS)
    this.#timer.unref()
  }

  #process(): Backend {
    this.#opened ??= this.#options.openProcess()
    return this.#opened
  }

  #active(): Backend {
    return this.#takeover.signal.aborted ? this.#process() : this.#queue
  }

  #check(): void {
    const { known, slots } = this.#queue.load()
    const { log } = this.#options
    this.#checks += 1
    this.#isRead ||= known
    if (known && slots > 0) {
      this.#lacking = 0
      if (!this.#takeover.signal.aborted) return
      this.#takeover = heardByMany()
      log.info({}, 'workers hash again')
      return
    }
    if (!this.#isRead && this.#checks <= FIRST_CHECKS) return
    this.#lacking += 1
    if (this.#takeover.signal.aborted || this.#lacking < LACKING_CHECKS) return
    log.warn({ redisAnswers: known }, 'no worker answers: a process beside the application hashes')
    this.#process()
    this.#takeover.abort()
  }

  get by(): Backend['by'] {
    return this.#active().by
  }

  load(): Load {
    return this.#active().load()
  }

  predictedWaitMs(): number {
    return this.#active().predictedWaitMs()
  }

  async whenKnown(waitMs: number): Promise<void> {
    const { signal } = this.#takeover
    if (signal.aborted) return await this.#process().whenKnown(waitMs)
    const { promise: taken, resolve } = withResolvers<unknown>()
    signal.addEventListener('abort', resolve, { once: true })
    await Promise.race([this.#queue.whenKnown(waitMs), taken]).finally(() =>
      signal.removeEventListener('abort', resolve),
    )
  }

  async perform<Name extends JobName>(
    name: Name,
    request: Requests[Name],
    { waitMs, signal }: PerformOptions,
  ): Promise<Verdict | undefined> {
    const endsAt = performance.now() + waitMs
    const left = () => Math.max(0, endsAt - performance.now())
    if (!this.#takeover.signal.aborted) {
      const verdict = await this.#byQueue(
        (stop) => this.#queue.perform(name, request, { waitMs, signal: stop }),
        signal,
      )
      if (verdict !== undefined || signal?.aborted || left() === 0) return verdict
    }
    const process = this.#process()
    // Not awaited once it is known: admission counts a call as soon as it is let in.
    if (!process.load().known) await process.whenKnown(left())
    return await process.perform(name, request, { waitMs: left(), signal })
  }

  /** Undefined when the process has taken over, or Redis did not take the job. */
  async #byQueue(
    perform: (signal: AbortSignal) => Promise<Verdict | undefined>,
    signal: AbortSignal | undefined,
  ): Promise<Verdict | undefined> {
    const moved = this.#takeover.signal
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

  begin(request: Requests['verify'], lifeMs: number): Promise<JobRef> {
    return this.#active().begin(request, lifeMs)
  }

  /** The process alone knows what it has begun; no other process of this application answers it. */
  async follow(job: JobRef, options: PerformOptions): Promise<Followed> {
    const followed = await this.#opened?.follow(job, options)
    return followed === undefined || followed.isLost ? await this.#queue.follow(job, options) : followed
  }

  take(job: JobRef): boolean {
    this.#opened?.take(job)
    return this.#queue.take(job)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all([this.#queue.close(), this.#opened?.close()])
  }
}

/** Each call in hand listens. Node 20 and 22 would warn of a leak from the eleventh on. */
function heardByMany(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}
