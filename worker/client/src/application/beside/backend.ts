/** A process beside the application: order of calls, retries, and the load that admission needs. */
import { within, withResolvers } from '@spillway/common/within'
import type { Load } from '@spillway/queue/order'
import type { BesideCapacity, BesideMessage, BesideSettings } from '@spillway/queue/wire/beside'
import { NO_CAPACITY } from '@spillway/queue/wire/capacity'
import type { JobName, Requests, Result } from '@spillway/queue/wire/job'
import type { Backend, Followed, PerformOptions } from '../backend.js'
import { PasswordsError } from '../passwords-error.js'
import type { Logger } from '../types.js'
import { type Call, Calls } from './calls.js'
import { ForkedProcess, HashingInPlace, type HashingProcess } from './hashing-process.js'

/** The pause after a process that never got ready: the next one is likely to fail, too. */
const RESTART_AFTER_MS = 1_000
/** Hashes a second that are assumed before the first process is ready: a core of argon2id. */
const UNKNOWN_PER_SECOND = 20

type Unfit = Extract<BesideMessage, { kind: 'unfit' }>

interface BesideOptions {
  program: URL
  settings: BesideSettings
  /** Whether this process hashes itself [false]. */
  inProcess?: boolean | undefined
  log: Logger
}

export class BesideBackend implements Backend {
  readonly by = 'process'
  readonly #options: BesideOptions
  readonly #calls = new Calls()
  #hashing: HashingProcess | undefined
  #capacity: (BesideCapacity & { since: number }) | undefined
  /** The last known speed, which counts while a process starts. */
  #perSecond = UNKNOWN_PER_SECOND
  #started = withResolvers<void>()
  /** Why the last process never got ready, until another is tried. */
  #unfit: { error: PasswordsError; at: number } | undefined
  /** The engine in use, which is logged once. */
  #engine: string | undefined
  #isClosed = false

  constructor(options: BesideOptions) {
    this.#options = options
    this.#start()
  }

  #start(): void {
    this.#unfit = undefined
    const { program, settings, inProcess = false } = this.#options
    let unfitMessage: Unfit | undefined
    this.#hashing = new (inProcess ? HashingInPlace : ForkedProcess)({
      program,
      settings,
      isNeeded: () => this.#calls.waiting + this.#calls.inHand > 0,
      told: (message) => {
        if (message.kind === 'unfit') unfitMessage = message
        else this.#told(message)
      },
      ended: (reason) => this.#ended(reason, unfitMessage),
    })
  }

  #told(message: Exclude<BesideMessage, Unfit | { kind: 'alive' }>): void {
    const { slots, lineMs } = message.capacity
    this.#capacity = { ...message.capacity, since: this.#capacity?.since ?? performance.now() }
    this.#perSecond = (slots * 1_000) / lineMs
    if (message.kind === 'ready') {
      if (this.#engine === undefined && message.engine !== undefined) this.#options.log.info({}, message.engine)
      this.#engine ??= message.engine
      this.#started.resolve()
    } else {
      this.#calls.answered(message.id, message.result)
    }
    this.#handOut()
  }

  #ended(reason: string, unfit: Unfit | undefined): void {
    const readySince = this.#capacity?.since
    this.#hashing = undefined
    this.#capacity = undefined
    this.#calls.returned(new PasswordsError('no_worker', `the hashing process ended twice during this call: ${reason}`))
    if (readySince !== undefined) {
      this.#started = withResolvers()
      this.#options.log.warn({ reason }, 'the hashing process ended')
      // A process that ends again and again is started only for calls.
      if (this.#calls.waiting > 0 || performance.now() - readySince > RESTART_AFTER_MS) this.#start()
    } else {
      const error = unfit === undefined ? notStarted(reason) : new PasswordsError(unfit.code, unfit.reason)
      this.#unfit = { error, at: performance.now() }
      this.#options.log.error({ reason: error.message }, 'the hashing process cannot be started')
      this.#calls.rejectAll(error)
      this.#started.resolve()
      this.#started = withResolvers()
    }
  }

  /** Gives the process as many calls as it takes at a time. */
  #handOut(): void {
    while (this.#hashing !== undefined && this.#capacity !== undefined && this.#calls.inHand < this.#capacity.inHand) {
      const call = this.#calls.next(performance.now() + this.#capacity.latencyMs)
      if (call === undefined) break
      this.#hashing.send({ id: call.id, request: call.request })
    }
  }

  /** Throws the error of the last process if it failed a moment ago; otherwise tries another. */
  #ensureStarted(): void {
    if (this.#hashing !== undefined) return
    if (this.#unfit !== undefined && performance.now() - this.#unfit.at < RESTART_AFTER_MS) throw this.#unfit.error
    this.#start()
  }

  load(): Load {
    const { waiting: open, inHand: active } = this.#calls
    const queue = { paused: false, open, line: 0, active }
    if (this.#capacity === undefined) return { ...NO_CAPACITY, linePerSecond: this.#perSecond, ...queue, known: false }
    const { slots, serviceMs, latencyMs } = this.#capacity
    const perSecond = { jobsPerSecond: (slots * 1_000) / serviceMs, linePerSecond: this.#perSecond }
    return { workers: 1, slots, serviceMs, latencyMs, ...perSecond, ...queue, known: true }
  }

  now(): number {
    return Date.now()
  }

  async whenKnown(waitMs: number): Promise<void> {
    this.#ensureStarted()
    await within(waitMs, this.#started.promise)
    if (this.#unfit !== undefined) throw this.#unfit.error
  }

  async perform(
    _name: JobName,
    request: Requests[JobName],
    { waitMs, signal }: PerformOptions,
  ): Promise<Result | undefined> {
    const call = this.#add(request, waitMs)
    try {
      return await within(waitMs, call.answer, signal)
    } finally {
      this.#forget(call)
    }
  }

  #add(request: Requests[JobName], lifeMs: number): Call {
    this.#ensureStarted()
    const call = this.#calls.add(request, performance.now() + lifeMs)
    this.#handOut()
    return call
  }

  #forget(call: Call): void {
    if (this.#calls.forget(call)) this.#hashing?.send({ id: call.id, cancelled: true })
  }

  /** Without a queue, nothing outlives a connection. */
  follow(): Promise<Followed> {
    return Promise.reject(new TypeError('tickets need a queue: give redis and sealKeys'))
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#hashing?.close()
  }
}

function notStarted(reason: string): PasswordsError {
  return new PasswordsError('no_worker', `the hashing process did not start: ${reason}`, {
    retryAfterMs: RESTART_AFTER_MS,
  })
}
