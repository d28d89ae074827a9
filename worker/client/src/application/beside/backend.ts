/** A process beside the application: order of calls, retries, and the load that admission needs. */
import { randomUUID } from 'node:crypto'
import { within, withResolvers } from '@spillway/common/within'
import { LoadState, predictWaitMs } from '@spillway/queue/wait/load-state'
import type { BesideCapacity, BesideMessage, BesideSettings } from '@spillway/queue/wire/beside'
import type { Load } from '@spillway/queue/wire/capacity'
import type { JobName, Requests, Verdict } from '@spillway/queue/wire/job'
import type { JobRef } from '@spillway/queue/wire/reply'
import { workOfRequest } from '@spillway/queue/wire/work'
import { type Backend, type Followed, type PerformOptions, withOwnWork } from '../backend.js'
import { PasswordsError } from '../passwords-error.js'
import type { Logger } from '../types.js'
import { type Call, Calls } from './calls.js'
import { ForkedProcess, HashingInPlace, type HashingProcess } from './hashing-process.js'

/** After a process that never got ready: what kept it is likely to keep the next one. */
const RESTART_AFTER_MS = 1_000

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
  /** Calls that have tickets, until their answers are taken or their time is over. */
  readonly #begun = new Map<string, { call: Call; timer: NodeJS.Timeout }>()
  readonly #state = new LoadState()
  #hashing: HashingProcess | undefined
  #capacity: (BesideCapacity & { since: number }) | undefined
  #started = withResolvers<void>()
  /** Why the last process never got ready, until another is tried. */
  #unfit: { error: PasswordsError; at: number } | undefined
  /** What hashes, which is logged once. */
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
    this.#capacity = { ...message.capacity, since: this.#capacity?.since ?? performance.now() }
    if (message.kind === 'ready') {
      if (this.#engine === undefined && message.engine !== undefined) this.#options.log.info({}, message.engine)
      this.#engine ??= message.engine
      this.#started.resolve()
    } else {
      this.#calls.answered(message.id, message.verdict)
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
      // A process that ends again and again is started for calls alone.
      if (this.#calls.waiting > 0 || performance.now() - readySince > RESTART_AFTER_MS) this.#start()
    } else {
      const error = unfit === undefined ? notStarted(reason) : new PasswordsError(unfit.code, unfit.reason)
      this.#unfit = { error, at: performance.now() }
      this.#options.log.error({ reason: error.message }, 'the hashing process cannot be started')
      this.#calls.rejectAll(error)
      this.#started.resolve()
      this.#started = withResolvers()
    }
    this.#account()
  }

  /** Gives the process as many calls as it takes at a time. */
  #handOut(): void {
    while (this.#hashing !== undefined && this.#capacity !== undefined && this.#calls.inHand < this.#capacity.inHand) {
      const call = this.#calls.next(performance.now() + this.#capacity.latencyMs)
      if (call === undefined) break
      this.#hashing.send({ id: call.id, request: call.request })
    }
    this.#account()
  }

  #account(): void {
    if (this.#capacity === undefined) {
      this.#state.reading().failed()
      return
    }
    const { slots, serviceMs, lineMs, latencyMs, unitCosts } = this.#capacity
    const { waiting, inHand: active } = this.#calls
    this.#state.reading().succeeded(
      { waiting, active, deferred: 0, absent: 0, returned: 0, aheadOfKnown: waiting },
      {
        ...{ workers: 1, slots, serviceMs, latencyMs, unitCosts },
        jobsPerSecond: (slots * 1_000) / serviceMs,
        linePerSecond: (slots * 1_000) / lineMs,
      },
    )
  }

  /** Throws why the last process did not start, if that was a moment ago; else tries another. */
  #ensureStarted(): void {
    if (this.#hashing !== undefined) return
    if (this.#unfit !== undefined && performance.now() - this.#unfit.at < RESTART_AFTER_MS) throw this.#unfit.error
    this.#start()
  }

  load(): Load {
    return withOwnWork(this.#state.current(), this.#calls.work)
  }

  predictedWaitMs(): number {
    return predictWaitMs(this.load(), 'held')
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
  ): Promise<Verdict | undefined> {
    const call = this.#add(request, waitMs)
    try {
      return await within(waitMs, call.answer, signal)
    } finally {
      this.#forget(call)
    }
  }

  #add(request: Requests[JobName], lifeMs: number): Call {
    this.#ensureStarted()
    const work = workOfRequest(request, this.#options.settings.policy)
    const call = this.#calls.add(request, work, performance.now() + lifeMs)
    this.#handOut()
    return call
  }

  #forget(call: Call): void {
    if (this.#calls.forget(call)) this.#hashing?.send({ id: call.id, cancelled: true })
    this.#account()
  }

  async begin(request: Requests['verify'], lifeMs: number): Promise<JobRef> {
    const call = this.#add(request, lifeMs)
    const id = randomUUID()
    const timer = setTimeout(() => {
      if (this.take({ id })) this.#forget(call)
    }, lifeMs)
    timer.unref()
    this.#begun.set(id, { call, timer })
    return { id, name: 'verify', deadline: Date.now() + lifeMs }
  }

  async follow({ id }: JobRef, { waitMs, signal }: PerformOptions): Promise<Followed> {
    const call = this.#begun.get(id)?.call
    if (call === undefined) return { verdict: undefined, isLost: true, ahead: undefined, waitMs: 0 }
    const verdict = await within(waitMs, call.answer, signal)
    const ahead = this.#calls.ahead(call)
    return { verdict, isLost: false, ahead, waitMs: ((ahead + 1) * 1_000) / this.load().jobsPerSecond }
  }

  take({ id }: Pick<JobRef, 'id'>): boolean {
    clearTimeout(this.#begun.get(id)?.timer)
    return this.#begun.delete(id)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const id of this.#begun.keys()) this.take({ id })
    await this.#hashing?.close()
  }
}

function notStarted(reason: string): PasswordsError {
  return new PasswordsError('no_worker', `the hashing process did not start: ${reason}`, {
    retryAfterMs: RESTART_AFTER_MS,
  })
}
