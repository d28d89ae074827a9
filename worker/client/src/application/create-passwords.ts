/** Passwords as an application calls them: deadlines, admission and policy, whatever hashes behind them. */
import { randomBytes } from 'node:crypto'
import type { JobName, Requests, Verdict } from '../protocol/job.js'
import { bcryptReadsWhole } from '../protocol/policy.js'
import type { JobRef } from '../protocol/reply.js'
import { parseKeyring } from '../protocol/seal.js'
import type { ExactHash } from '../protocol/setting.js'
import { isBelow, isOf, storedHashDigest } from '../protocol/stored-hash.js'
import { throttledWarning } from '../redis/throttled-warning.js'
import { within } from '../within.js'
import { createCallAdmission } from './admission.js'
import { observe } from './observe.js'
import { consoleLog, openBackend } from './open-backend.js'
import { completePolicy, refuseUnknown, wholeNumber } from './options.js'
import { PasswordsError } from './passwords-error.js'
import { ATTEMPT_MS, createPatience } from './patience.js'
import { createServing } from './serving.js'
import { readTicket, sealTicket, waitingAnswer } from './tickets.js'
import type { CallOptions, Passwords, PasswordsOptions, VerifyOptions } from './types.js'

/** In a process that serves; in any other a call takes as long as it takes. */
const WAIT_MS = 8_000
/** As at gateways. */
const TICKET_LIFE_MS = 300_000
const MAX_OUTSTANDING = 10_000
/** How far the clocks of an application's processes and its database may be apart. */
const CLOCKS_APART_MS = 300_000
/** The longest delay of a timer. */
const LONGEST_MS = 2 ** 31 - 1

const OPTIONS: Record<keyof PasswordsOptions, true> = {
  ...{ redis: true, sealKeys: true, queuePrefix: true, fallbackConcurrency: true, traceparent: true },
  ...{ policy: true, rehash: true, waitMs: true, maxOutstanding: true, concurrency: true, inProcess: true },
  ...{ markUsed: true, onCall: true, log: true },
}

/** What the drop-in replacements of other packages need in addition. */
export interface ExactPasswords extends Passwords {
  /** A hash with all of its setting given: that, `$` where it is argon2, and the digest. */
  hashExactly(exact: ExactHash): Promise<string>
  /** `verify`, which rejects with `unsupported_hash` instead of resolving with false. */
  verifyExactly(password: string, storedHash: string): Promise<boolean>
}

/** @param program the process beside the application, which hashes where there is no queue */
export function createPasswordsWith(program: URL, options: PasswordsOptions): ExactPasswords {
  refuseUnknown('options', options, OPTIONS)
  const { rehash = 'when-weaker', waitMs, maxOutstanding = MAX_OUTSTANDING, log = consoleLog } = options
  if (waitMs !== undefined && waitMs !== Number.POSITIVE_INFINITY) wholeNumber('waitMs', waitMs, 1, LONGEST_MS)
  wholeNumber('maxOutstanding', maxOutstanding, 1, Number.MAX_SAFE_INTEGER)
  const policy = completePolicy(options.policy)
  const backend = openBackend(program, { ...options, log }, { waitMs: Math.min(waitMs ?? WAIT_MS, ATTEMPT_MS), policy })
  const keyring = parseKeyring(options.sealKeys || `own:${randomBytes(32).toString('base64')}`)
  const observed = observe({ onCall: options.onCall, by: () => backend.by, log })
  const admission = createCallAdmission(backend, maxOutstanding)
  const unsupported = throttledWarning(log, 'no password matches a stored hash')
  const serves = createServing()
  const patience = createPatience(async (leftMs) => {
    if (!backend.load().known) await backend.whenKnown(leftMs)
    const refused = admission.refusalOf(leftMs)
    if (refused !== undefined) throw refused
  })
  const inHand = new Set<AbortController>()
  let isClosed = false

  /** Runs a request unless it cannot be answered in time. The verdict is never `refused`. */
  function run<Name extends JobName>(name: Name, request: Requests[Name], options: CallOptions) {
    return observed(name, options.signal, () => answerTo(name, request, options))
  }

  async function answerTo<Name extends JobName>(
    name: Name,
    request: Requests[Name],
    { signal, deadline }: CallOptions,
  ) {
    return await untilClosed(signal, async (call) => {
      const totalMs = remainingMs(deadline, usualMs())
      const verdict = await runWithin(totalMs, name, request, call)
      if (verdict !== undefined && !isExpired(verdict)) return accepted(verdict)
      throwIfOver(signal)
      throw verdict === undefined ? admission.late() : admission.expired()
    })
  }

  /**
   * Verifies a password with a stored hash, and again with the hash that took its place meanwhile. Returns the hash that was verified, and the
   * verdict on it; undefined for a hash that nothing verifies.
   */
  async function verifyCurrent(
    request: Requests['verify'],
    { currentHash, deadline = Date.now() + usualMs(), signal }: VerifyOptions,
  ): Promise<{ storedHash: string | null; verdict: Answered | undefined }> {
    const { storedHash } = request
    const verdict = await run('verify', request, { deadline, signal }).catch(orUnsupported)
    if (verdict?.kind !== 'match' || currentHash === undefined) return { storedHash, verdict }
    const current = (await currentHash()) ?? null
    if (current === storedHash) return { storedHash, verdict }
    if (current === null) return { storedHash, verdict: { kind: 'mismatch' } }
    return await verifyCurrent({ ...request, storedHash: current }, { currentHash, deadline, signal })
  }

  /** Gives a call a signal that fires with its own, and when all is closed. */
  async function untilClosed<T>(signal: AbortSignal | undefined, run: (call: AbortSignal) => Promise<T>): Promise<T> {
    throwIfOver(signal)
    const call = new AbortController()
    const abort = () => call.abort()
    inHand.add(call)
    signal?.addEventListener('abort', abort)
    try {
      return await run(call.signal)
    } finally {
      inHand.delete(call)
      signal?.removeEventListener('abort', abort)
    }
  }

  function throwIfOver(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted()
    if (isClosed) throw closed()
  }

  async function runWithin<Name extends JobName>(
    totalMs: number,
    name: Name,
    request: Requests[Name],
    signal: AbortSignal,
  ): Promise<Verdict | undefined> {
    if (totalMs === Number.POSITIVE_INFINITY)
      return await patience.attempt(async (leftMs) => {
        const verdict = await backend.perform(name, request, { waitMs: leftMs, signal })
        return verdict !== undefined && isExpired(verdict) ? undefined : verdict
      }, signal)
    const endsAt = performance.now() + totalMs
    const left = () => Math.max(0, endsAt - performance.now())
    if (!backend.load().known) await within(left(), backend.whenKnown(left()), signal)
    if (signal.aborted) return undefined
    const refused = admission.refusalOf(left())
    if (refused !== undefined) throw await whenDue(refused, left(), signal)
    // Nothing is awaited between: a call counts as soon as it is let in.
    return await backend.perform(name, request, { waitMs: left(), signal })
  }

  async function whenDue(refused: PasswordsError, leftMs: number, signal: AbortSignal): Promise<PasswordsError> {
    await within(leftMs, admission.paced(), signal)
    return refused
  }

  /** How long a call without a deadline may take. */
  const usualMs = () => waitMs ?? (serves() ? WAIT_MS : Number.POSITIVE_INFINITY)

  /** With a queue any process answers a ticket, and a writer to Redis may restore old data: only the database knows. */
  function assertMarks(): void {
    if (options.redis && options.markUsed === undefined)
      throw new TypeError('tickets of a queue need the option markUsed, which marks them as used in your database')
  }

  /** True for one redemption of a ticket alone. */
  async function takes(job: JobRef, expiresAt: number): Promise<boolean> {
    const isMarked = options.markUsed?.(job.id, new Date(expiresAt + CLOCKS_APART_MS)) ?? true
    return (await isMarked) && backend.take(job)
  }

  /** Throws other errors than of a stored hash that nothing verifies. */
  function orUnsupported(error: unknown): undefined {
    if (!(error instanceof PasswordsError) || error.code !== 'unsupported_hash') throw error
    unsupported.warn(error)
  }

  return {
    async admit(response) {
      const left = new AbortController()
      if (response?.destroyed) left.abort()
      response?.once('close', () => response.writableEnded || left.abort())
      const admitted = async (call: AbortSignal) => {
        const totalMs = Math.min(usualMs(), LONGEST_MS)
        if (!backend.load().known) await within(totalMs, backend.whenKnown(totalMs), call)
        throwIfOver(left.signal)
        const refused = admission.refusalOf(totalMs)
        if (refused !== undefined) throw await whenDue(refused, totalMs, call)
        return undefined
      }
      await observed('verify', left.signal, () => untilClosed(left.signal, admitted))
      return { signal: left.signal }
    },
    async verify(password, given, options = {}) {
      assertText('the password', password)
      if (given !== null) assertText('the stored hash', given)
      const { onRehash, onUnsupported } = options
      const wantsNew = rehash !== 'never' && onRehash !== undefined
      const request = { password, storedHash: given, policy, rehash: wantsNew }
      const { verdict, storedHash } = await verifyCurrent(request, options)
      if (verdict === undefined) await onUnsupported?.()
      if (verdict?.kind !== 'match' || storedHash === null) return false
      // A hash of another policy was made by a worker that knows no policies.
      if (wantsNew && verdict.hash !== undefined && isOf(verdict.hash, policy)) await onRehash(verdict.hash, storedHash)
      return true
    },
    async verifyExactly(password, storedHash) {
      const verdict = await run('verify', { password, storedHash, policy, rehash: false }, {})
      return verdict.kind === 'match'
    },
    async begin(password, storedHash, { subject, lifeMs = TICKET_LIFE_MS, rehash: wantsNew = false } = {}) {
      assertMarks()
      assertText('the password', password)
      if (storedHash !== null) assertText('the stored hash', storedHash)
      if (subject !== undefined) assertText('the subject', subject)
      wholeNumber('lifeMs', lifeMs, 1, LONGEST_MS)
      return await untilClosed(undefined, async (call) => {
        if (!backend.load().known) await within(WAIT_MS, backend.whenKnown(WAIT_MS), call)
        throwIfOver(undefined)
        const refused = admission.ticketRefusalOf(lifeMs)
        if (refused !== undefined) throw await whenDue(refused, WAIT_MS, call)
        const expiresAt = Date.now() + lifeMs
        const job = await backend.begin({ password, storedHash, policy, rehash: wantsNew }, lifeMs)
        // The length of a ticket must not tell whether there is a user.
        const hash = storedHashDigest(storedHash ?? '')
        return sealTicket(keyring, { job, subject, expiresAt, hash })
      })
    },
    async redeem(ticket, options) {
      assertMarks()
      assertText('the ticket', ticket)
      const { currentHash, holdMs = WAIT_MS, signal } = options ?? {}
      if (typeof currentHash !== 'function')
        throw new TypeError('redeem needs the option currentHash, which reads the stored hash of a subject')
      wholeNumber('holdMs', holdMs, 0, LONGEST_MS)
      const { job, subject, expiresAt, hash } = readTicket(keyring, ticket)
      return await untilClosed(signal, async (call) => {
        if (!backend.load().known) await within(WAIT_MS, backend.whenKnown(WAIT_MS), call)
        const leftMs = Math.min(holdMs, Math.max(0, expiresAt - Date.now()))
        const { verdict, isLost, ahead, waitMs: etaMs } = await backend.follow(job, { waitMs: leftMs, signal: call })
        throwIfOver(signal)
        if (isLost) throw new PasswordsError('ticket_lost', 'the answer was lost; the first request may be sent again')
        if (verdict === undefined) {
          if (leftMs < holdMs) throw new PasswordsError('ticket_expired', 'the ticket has expired')
          return { outcome: 'waiting', answer: waitingAnswer({ ticket, ahead, etaMs, holdMs }) }
        }
        // Read before the ticket is marked: what fails leaves the ticket good.
        const storedHash = verdict.kind === 'match' ? await currentHash(subject) : undefined
        if (!(await takes(job, expiresAt))) throw new PasswordsError('ticket_used', 'the ticket has been redeemed')
        const answer = await answered(verdict).catch(orUnsupported)
        if (answer?.kind !== 'match') return { outcome: 'mismatch', subject }
        if (typeof storedHash !== 'string' || storedHashDigest(storedHash) !== hash)
          throw new PasswordsError('hash_replaced', 'the stored hash was replaced; the first request may be sent again')
        const newHash = answer.hash !== undefined && isOf(answer.hash, policy) ? answer.hash : undefined
        return { outcome: 'match', subject, storedHash, newHash }
      })
    },
    async hash(password, by, call = {}) {
      assertText('the password', password)
      const wanted = by === undefined ? policy : completePolicy(by)
      if (wanted.algorithm === 'bcrypt' && !bcryptReadsWhole(password))
        throw new PasswordsError('unsupported_password', 'bcrypt reads 72 bytes, up to a NUL: this password is longer')
      const verdict = await run('hash', { password, policy: wanted }, call)
      if (verdict.kind === 'hashed' && isOf(verdict.hash, wanted)) return verdict.hash
      throw wrongPolicy()
    },
    async hashExactly(exact) {
      const verdict = await run('hash', { password: '', exact }, {})
      if (verdict.kind === 'hashed' && verdict.hash.startsWith(exact.setting)) return verdict.hash
      throw wrongPolicy()
    },
    needsRehash: (storedHash, by) => isBelow(storedHash, by === undefined ? policy : completePolicy(by)),
    capacity() {
      const { known, workers, slots, jobsPerSecond, serviceMs, waiting, deferred, active } = backend.load()
      const predictedWaitMs = backend.predictedWaitMs()
      const { by } = backend
      return {
        by,
        known,
        workers,
        slots,
        jobsPerSecond,
        serviceMs,
        waiting: waiting + deferred,
        active,
        predictedWaitMs,
      }
    },
    async close() {
      if (isClosed) return
      isClosed = true
      for (const call of inHand) call.abort()
      await backend.close()
    },
  }
}

/** How long a call may take. Throws `expired` when its deadline has passed. */
function remainingMs(deadline: number | Date | undefined, waitMs: number): number {
  const leftMs = deadline === undefined ? waitMs : Number(deadline) - Date.now()
  if (Number.isNaN(leftMs)) throw new TypeError('a deadline is a Date or epoch milliseconds')
  if (leftMs <= 0) throw new PasswordsError('expired', 'the deadline has passed')
  return leftMs === Number.POSITIVE_INFINITY ? leftMs : Math.min(leftMs, LONGEST_MS)
}

type Answered = Exclude<Verdict, { kind: 'refused' }>

/** Whether a worker dropped the work, because its answer would have come too late. */
function isExpired(verdict: Verdict): boolean {
  return verdict.kind === 'refused' && verdict.code === 'expired'
}

/** The verdict; rejects where a worker refused. */
async function answered(verdict: Verdict) {
  return accepted(verdict)
}

/** The verdict unless a worker refused. */
function accepted(verdict: Verdict): Answered {
  if (verdict.kind !== 'refused') return verdict
  // Of a ticket: other calls are `expired` themselves.
  if (verdict.code === 'expired') throw new PasswordsError('ticket_expired', 'the ticket has expired')
  if (verdict.code === 'unavailable') throw new PasswordsError('queue_unavailable', 'no verdict could be had')
  const message = {
    unsupported_hash: 'nothing here makes or verifies such a hash',
    unsupported_password: 'the hash would not be of the whole password',
    hashing_failed: 'the hash failed',
  }
  throw new PasswordsError(verdict.code, message[verdict.code])
}

function wrongPolicy(): PasswordsError {
  return new PasswordsError('unsupported_policy', 'a worker made another kind of hash than it was asked for')
}

function closed(): PasswordsError {
  return new PasswordsError('closed', 'close() was called')
}

function assertText(what: string, value: unknown): void {
  if (typeof value !== 'string') throw new TypeError(`${what} must be a string`)
}
