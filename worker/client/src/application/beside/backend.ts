/** A process beside the application as what hashes for it: the order of calls, their retries, and the load that admission needs. */
import { createLoadState } from '../../passwords/load-state.js'
import type { BesideCapacity, BesideMessage, BesideRequest, BesideSettings } from '../../protocol/beside.js'
import type { HashPolicy } from '../../protocol/policy.js'
import { parseSetting, type Setting } from '../../protocol/setting.js'
import { parseStoredHash, type StoredHash } from '../../protocol/stored-hash.js'
import { within, withResolvers } from '../../within.js'
import type { Backend } from '../open-backend.js'
import { PasswordsError } from '../passwords-error.js'
import type { Logger } from '../types.js'
import { createBegun } from './begun.js'
import { createCalls } from './calls.js'
import { type HashingProcess, startHashingProcess } from './hashing-process.js'
import { startHashingInPlace } from './in-place.js'

/** After a process that never got ready: what kept it is likely to keep the next one. */
const RESTART_AFTER_MS = 1_000
/** The weight of a call in the mean cost of the last ones: the same as the process uses for its times. */
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
  const policyCost = costOf({ password: '' }, settings.policy)
  /** The mean cost of the calls whose times the capacity tells, and the most that one of all those cost. */
  let measuredCost = policyCost
  let dearestCost = policyCost
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
      const cost = calls.answered(message.id, message.verdict) ?? measuredCost
      dearestCost = Math.max(dearestCost, cost)
      measuredCost += (cost - measuredCost) * CALL_WEIGHT
    }
    handOut()
  }

  function ended(reason: string, unfitMessage: Unfit | undefined): void {
    const readySince = capacity?.since
    hashing = undefined
    capacity = undefined
    measuredCost = dearestCost = policyCost
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
    // Calls that wait may cost more than those that were done. What was never measured makes no call busy: until one as dear was done, they
    // count as the dearest that was.
    const dearer = Math.min(calls.meanCost() ?? measuredCost, dearestCost) / measuredCost
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

// What a call costs in relation to others, before it is hashed: admission must not take a bcrypt hash of cost 12 for the argon2id hash of the
// policy, of which twenty are done in the same time.

/** The processor time of a round of bcrypt, and of a KiB in a pass of argon2, in milliseconds on a processor of 2022. Their ratio matters. */
const BCRYPT_ROUND_MS = 0.05
const ARGON2_KIB_MS = 0.000_22

/** In milliseconds of that processor; of formats whose cost is not known here, as of the policy. */
export function costOf(request: BesideRequest['request'], policy: HashPolicy): number {
  const wanted = 'exact' in request && request.exact !== undefined ? parseSetting(request.exact.setting) : undefined
  const stored =
    'storedHash' in request && request.storedHash !== null ? parseStoredHash(request.storedHash) : undefined
  return timeOf(wanted ?? stored ?? request.policy ?? policy)
}

function timeOf(hash: HashPolicy | Setting | StoredHash): number {
  if (hash.algorithm === 'bcrypt') return BCRYPT_ROUND_MS * 2 ** hash.cost
  return ARGON2_KIB_MS * hash.memoryKib * hash.time
}
