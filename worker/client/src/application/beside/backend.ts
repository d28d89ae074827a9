/** A process beside the application as what hashes for it: the order of calls, their retries, and the load that admission needs. */
import { createLoadState } from '../../passwords/load-state.js'
import type { BesideCapacity, BesideMessage, BesideSettings } from '../../protocol/beside.js'
import { withResolvers } from '../../with-resolvers.js'
import { within } from '../../within.js'
import type { Backend } from '../backend.js'
import { PasswordsError } from '../passwords-error.js'
import type { Logger } from '../types.js'
import { createBegun } from './begun.js'
import { createCalls } from './calls.js'
import { costOf } from './cost.js'
import { type HashingProcess, startHashingProcess } from './hashing-process.js'
import { startHashingInPlace } from './in-place.js'

/** After a process that never got ready: what kept it is likely to keep the next one. */
const RESTART_AFTER_MS = 1_000
/** The weight of a call in the mean cost of the last ones: as that of the process in its times. */
const CALL_WEIGHT = 0.2

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
  /** The mean cost of the calls whose times the capacity tells. */
  let measuredCost = costOf({ password: '' }, settings.policy)
  let started = withResolvers<void>()
  /** Why the last process never got ready, until another is tried. */
  let unfit: { error: PasswordsError; at: number } | undefined
  let isClosed = false
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
    if (message.kind === 'ready') started.resolve()
    else {
      const cost = calls.answered(message.id, message.verdict) ?? measuredCost
      measuredCost += (cost - measuredCost) * CALL_WEIGHT
    }
    handOut()
  }

  function ended(reason: string, unfitMessage: Unfit | undefined): void {
    const readySince = capacity?.since
    hashing = undefined
    capacity = undefined
    measuredCost = costOf({ password: '' }, settings.policy)
    calls.returned(new PasswordsError('no_worker', `the hashing process ended twice during this call: ${reason}`))
    if (readySince !== undefined) {
      started = withResolvers()
      log.warn({ reason }, 'the hashing process ended')
      // One that ends again and again is started for calls alone.
      if (calls.waiting > 0 || performance.now() - readySince > RESTART_AFTER_MS) start()
    } else {
      const error = unfitMessage === undefined ? notStarted(reason) : cannotHash(unfitMessage)
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
      const call = calls.next()
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
    const { slots, latencyMs } = capacity
    // Calls that wait may cost more than those that were done.
    const dearer = (calls.meanCost() ?? measuredCost) / measuredCost
    const serviceMs = capacity.serviceMs * dearer
    state.reading().succeeded(
      { waiting: calls.waiting, deferred: 0, active: calls.inHand, absent: 0, aheadOfKnown: calls.waiting },
      {
        ...{ workers: 1, slots, serviceMs, latencyMs },
        jobsPerSecond: (slots * 1_000) / serviceMs,
        linePerSecond: (slots * 1_000) / (capacity.lineMs * dearer),
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
    load: state.current,
    predictedWaitMs: () => state.predictedWaitMs('held'),
    async whenKnown(waitMs) {
      ensureStarted()
      await within(waitMs, started.promise)
      if (unfit !== undefined) throw unfit.error
    },
    async perform(_name, request, { waitMs, signal }) {
      ensureStarted()
      const call = calls.add(request, costOf(request, settings.policy))
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
      const call = calls.add(request, costOf(request, settings.policy))
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
      const { jobsPerSecond } = state.current()
      return { verdict, isLost: false, ahead, waitMs: ((ahead + 1) * 1_000) / jobsPerSecond }
    },
    take: async (job) => begun.take(job),
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

const TO_INSTALL = 'install @node-rs/argon2 and @node-rs/bcrypt, the optional dependencies of this package'

function cannotHash({ code, reason }: Unfit): PasswordsError {
  return new PasswordsError(code, code === 'not_installed' ? `${reason}: ${TO_INSTALL}` : reason)
}
