/** A process beside the application hashes: the order of calls, their retries, and the load that admission needs. */
import { createLoadState, predictWaitMs } from '../../passwords/load-state.js'
import type { BesideCapacity, BesideMessage, BesideSettings } from '../../protocol/beside.js'
import { workOfRequest } from '../../protocol/work.js'
import { within, withResolvers } from '../../within.js'
import type { Backend } from '../open-backend.js'
import { withOwnWork } from '../own-work.js'
import { PasswordsError } from '../passwords-error.js'
import type { Logger } from '../types.js'
import { createBegun } from './begun.js'
import { createCalls } from './calls.js'
import { type HashingProcess, startHashingProcess } from './hashing-process.js'
import { startHashingInPlace } from './in-place.js'

/** After a process that never got ready: what kept it is likely to keep the next one. */
const RESTART_AFTER_MS = 1_000

type Unfit = Extract<BesideMessage, { kind: 'unfit' }>

export interface BesideOptions {
  program: URL
  settings: BesideSettings
  /** Whether this process hashes itself [false]. */
  inProcess?: boolean | undefined
  log: Logger
}

export function openBesideBackend({ program, settings, inProcess = false, log }: BesideOptions): Backend {
  const calls = createCalls()
  const state = createLoadState()
  let hashing: HashingProcess | undefined
  let capacity: (BesideCapacity & { since: number }) | undefined
  const load = () => withOwnWork(state.current(), calls.work)
  let started = withResolvers<void>()
  /** Why the last process never got ready, until another is tried. */
  let unfit: { error: PasswordsError; at: number } | undefined
  let isClosed = false
  /** What hashes, which is logged once. */
  let engine: string | undefined
  const begun = createBegun()

  function start(): void {
    unfit = undefined
    let unfitMessage: Unfit | undefined
    hashing = (inProcess ? startHashingInPlace : startHashingProcess)({
      program,
      settings,
      isNeeded: () => calls.waiting + calls.inHand > 0,
      told(message) {
        if (message.kind === 'unfit') unfitMessage = message
        else told(message)
      },
      ended: (reason) => ended(reason, unfitMessage),
    })
  }

  function told(message: Exclude<BesideMessage, Unfit | { kind: 'alive' }>): void {
    capacity = { ...message.capacity, since: capacity?.since ?? performance.now() }
    if (message.kind === 'ready') {
      if (engine === undefined && message.engine !== undefined) log.info({}, message.engine)
      engine ??= message.engine
      started.resolve()
    } else {
      calls.answered(message.id, message.verdict)
    }
    handOut()
  }

  function ended(reason: string, unfitMessage: Unfit | undefined): void {
    const readySince = capacity?.since
    hashing = undefined
    capacity = undefined
    calls.returned(new PasswordsError('no_worker', `the hashing process ended twice during this call: ${reason}`))
    if (readySince !== undefined) {
      started = withResolvers()
      log.warn({ reason }, 'the hashing process ended')
      // One that ends again and again is started for calls alone.
      if (calls.waiting > 0 || performance.now() - readySince > RESTART_AFTER_MS) start()
    } else {
      const error =
        unfitMessage === undefined ? notStarted(reason) : new PasswordsError(unfitMessage.code, unfitMessage.reason)
      unfit = { error, at: performance.now() }
      log.error({ reason: error.message }, 'the hashing process cannot be started')
      calls.rejectAll(error)
      started.resolve()
      started = withResolvers()
    }
    account()
  }

  /** Gives the process as many calls as it takes at a time. */
  function handOut(): void {
    while (hashing !== undefined && capacity !== undefined && calls.inHand < capacity.inHand) {
      const call = calls.next(performance.now() + capacity.latencyMs)
      if (call === undefined) break
      hashing.send({ id: call.id, request: call.request })
    }
    account()
  }

  function account(): void {
    if (capacity === undefined) {
      state.reading().failed()
      return
    }
    const { slots, serviceMs, lineMs, latencyMs, unitCosts } = capacity
    state.reading().succeeded(
      {
        ...{ waiting: calls.waiting, deferred: 0, active: calls.inHand, absent: 0, returned: 0 },
        aheadOfKnown: calls.waiting,
      },
      {
        ...{ workers: 1, slots, serviceMs, latencyMs, unitCosts },
        jobsPerSecond: (slots * 1_000) / serviceMs,
        linePerSecond: (slots * 1_000) / lineMs,
      },
    )
  }

  /** Throws why the last process did not start, if that is only a moment ago; else another is tried. */
  function ensureStarted(): void {
    if (hashing !== undefined) return
    if (unfit !== undefined && performance.now() - unfit.at < RESTART_AFTER_MS) throw unfit.error
    start()
  }

  start()
  return {
    by: 'process',
    load,
    predictedWaitMs: () => predictWaitMs(load(), 'held'),
    async whenKnown(waitMs) {
      ensureStarted()
      await within(waitMs, started.promise)
      if (unfit !== undefined) throw unfit.error
    },
    async perform(_name, request, { waitMs, signal }) {
      ensureStarted()
      const call = calls.add(request, workOfRequest(request, settings.policy), performance.now() + waitMs)
      handOut()
      try {
        return await within(waitMs, call.answer, signal)
      } finally {
        if (calls.forget(call)) hashing?.send({ id: call.id, cancelled: true })
        account()
      }
    },
    async begin(request, lifeMs) {
      ensureStarted()
      const call = calls.add(request, workOfRequest(request, settings.policy), performance.now() + lifeMs)
      handOut()
      return begun.add(call, lifeMs, () => {
        if (calls.forget(call)) hashing?.send({ id: call.id, cancelled: true })
        account()
      })
    },
    async follow(job, { waitMs, signal }) {
      const call = begun.get(job)
      if (call === undefined) return { verdict: undefined, isLost: true, ahead: undefined, waitMs: 0 }
      const verdict = await within(waitMs, call.answer, signal)
      const ahead = calls.ahead(call)
      const { jobsPerSecond } = load()
      return { verdict, isLost: false, ahead, waitMs: ((ahead + 1) * 1_000) / jobsPerSecond }
    },
    take: begun.take,
    async close() {
      if (isClosed) return
      isClosed = true
      begun.close()
      await hashing?.close()
    },
  }
}

function notStarted(reason: string): PasswordsError {
  return new PasswordsError('no_worker', `the hashing process did not start: ${reason}`, {
    retryAfterMs: RESTART_AFTER_MS,
  })
}
