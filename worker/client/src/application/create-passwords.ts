/** Passwords as an application calls them, whatever hashes behind them. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { told } from '@spillway/queue/wait/tickets'
import type { Requests } from '@spillway/queue/wire/job'
import { bcryptReadsWhole, type HashPolicy } from '@spillway/queue/wire/policy'
import { parseKeyring } from '@spillway/queue/wire/seal'
import type { ExactHash } from '@spillway/queue/wire/setting'
import { isBelow, isOf, storedHashDigest } from '@spillway/queue/wire/stored-hash'
import type { Backend } from './backend.js'
import { BesideBackend } from './beside/backend.js'
import { loadInPlace } from './beside/hashing-process.js'
import { endUnlessApplication } from './beside/one-file.js'
import { Fallback } from './fallback.js'
import { CONCURRENCY_MAX, completePolicy, refuseUnknown, wholeNumber } from './options.js'
import { PasswordsError } from './passwords-error.js'
import { QueueBackend } from './queue-backend.js'
import { type Answered, ATTEMPT_MS, accepted, LONGEST_MS, RunningCalls, WAIT_MS } from './running-calls.js'
import { ApplicationTickets } from './tickets.js'
import type { Logger, Passwords, PasswordsOptions, VerifyOptions } from './types.js'

/** As at gateways. */
const TICKET_LIFE_MS = 300_000
const MAX_OUTSTANDING = 10_000
/** How far the clocks of an application's processes and its database may be apart. */
const CLOCKS_APART_MS = 300_000
/** After a wait until the expiry a timer may be some milliseconds early. */
const CLOCK_ERROR_MS = 100

const OPTIONS: Record<keyof PasswordsOptions, true> = {
  ...{ redis: true, sealKeys: true, queuePrefix: true, fallbackConcurrency: true, traceparent: true },
  ...{ policy: true, rehash: true, waitMs: true, maxOutstanding: true, concurrency: true, inProcess: true },
  ...{ markUsed: true, onCall: true, log: true },
}

const consoleLog: Logger = {
  error: (facts, message) => console.error(`spillway: ${message}`, facts),
  warn: (facts, message) => console.warn(`spillway: ${message}`, facts),
  info: () => undefined,
  debug: () => undefined,
}

endUnlessApplication()

const PROGRAM = './hashing-program.cjs'
const HASHING_PROGRAM = findProgram()

/**
 * The program of the process beside an application stands beside this module in the package. Where
 * a bundler included this module in another file, it is found in the installed package. Otherwise
 * the first call rejects with `not_installed`.
 */
function findProgram(): URL {
  const beside = new URL(PROGRAM, import.meta.url)
  if (existsSync(beside)) return beside
  for (const from of [import.meta.url, pathToFileURL(join(process.cwd(), 'any'))]) {
    try {
      const installed = createRequire(from).resolve('@spillway/client/package.json')
      return new URL(PROGRAM, pathToFileURL(installed))
    } catch {
      // Not above this one.
    }
  }
  return beside
}

// Jest loads nothing once a test has ended, and a test may have left a call without await.
if (process.env.JEST_WORKER_ID) {
  try {
    loadInPlace(HASHING_PROGRAM)
  } catch {
    // The calls tell.
  }
}

/** What the drop-in replacements of other packages need in addition. */
export interface ExactPasswords extends Passwords {
  /** A hash with all of its setting given: that, `$` where it is argon2, and the digest. */
  hashExactly(exact: ExactHash): Promise<string>
  /** `verify`, which rejects with `unsupported_hash` instead of resolving with false. */
  verifyExactly(password: string, storedHash: string): Promise<boolean>
}

/** Under Jest and Vitest, each of whose test files has a process or thread, that one hashes. */
export function openPasswords(options: PasswordsOptions): ExactPasswords {
  const { inProcess = Boolean(process.env.JEST_WORKER_ID || process.env.VITEST) } = options
  return createPasswordsWith(HASHING_PROGRAM, { ...options, inProcess })
}

/** @param program the process beside, where there is no queue or it does not answer */
export function createPasswordsWith(program: URL, options: PasswordsOptions): ExactPasswords {
  refuseUnknown('options', options, OPTIONS)
  const {
    rehash = 'when-weaker',
    waitMs,
    maxOutstanding = MAX_OUTSTANDING,
    onCall,
    markUsed,
    log = consoleLog,
  } = options
  if (waitMs !== undefined && waitMs !== Number.POSITIVE_INFINITY) wholeNumber('waitMs', waitMs, 1, LONGEST_MS)
  wholeNumber('maxOutstanding', maxOutstanding, 1, Number.MAX_SAFE_INTEGER)
  const policy = completePolicy(options.policy)
  const backend = backendOf(program, { ...options, maxOutstanding, log }, policy)
  const keyring = parseKeyring(options.sealKeys || `own:${randomBytes(32).toString('base64')}`)
  const calls = new RunningCalls(backend, { waitMs, maxOutstanding, onCall, log })
  const tickets = new ApplicationTickets(keyring)
  const unsupported = new ThrottledWarning(log, 'no password matches a stored hash')

  /**
   * Verifies a password with a stored hash, and again with the hash that took its place meanwhile.
   * Returns the hash that was verified, and the verdict on it; undefined for a hash that nothing
   * verifies.
   */
  async function verifyCurrent(
    request: Requests['verify'],
    { currentHash, deadline = Date.now() + calls.usualMs(), signal }: VerifyOptions,
  ): Promise<{ storedHash: string | null; verdict: Answered | undefined }> {
    const { storedHash } = request
    const verdict = await calls.run('verify', request, { deadline, signal }).catch(orUnsupported)
    if (verdict?.kind !== 'match' || currentHash === undefined) return { storedHash, verdict }
    const current = (await currentHash()) ?? null
    if (current === storedHash) return { storedHash, verdict }
    if (current === null) return { storedHash, verdict: { kind: 'mismatch' } }
    return await verifyCurrent({ ...request, storedHash: current }, { currentHash, deadline, signal })
  }

  /** With a queue, a writer to Redis may restore old data: only the database knows. */
  function assertMarks(): void {
    if (options.redis && markUsed === undefined)
      throw new TypeError('tickets of a queue need the option markUsed, which marks them as used in your database')
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
      await calls.admit(left.signal)
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
      const verdict = await calls.run('verify', { password, storedHash, policy, rehash: false }, {})
      return verdict.kind === 'match'
    },
    async begin(password, storedHash, { subject, lifeMs = TICKET_LIFE_MS, rehash: wantsNew = false } = {}) {
      assertMarks()
      assertText('the password', password)
      if (storedHash !== null) assertText('the stored hash', storedHash)
      if (subject !== undefined) assertText('the subject', subject)
      wholeNumber('lifeMs', lifeMs, 1, LONGEST_MS)
      return await calls.untilClosed(undefined, async (call) => {
        await calls.admitTicket(lifeMs, call)
        const expiresAt = Date.now() + lifeMs
        const job = await backend.begin({ password, storedHash, policy, rehash: wantsNew }, lifeMs)
        // The length of a ticket must not tell whether there is a user.
        const hash = storedHashDigest(storedHash ?? '')
        return tickets.issue({ job, expiresAt, contents: { hash, ...(subject === undefined ? {} : { subject }) } })
      })
    },
    async redeem(ticket, options) {
      assertMarks()
      assertText('the ticket', ticket)
      const { currentHash, holdMs = WAIT_MS, signal } = options ?? {}
      if (typeof currentHash !== 'function')
        throw new TypeError('redeem needs the option currentHash, which reads the stored hash of a subject')
      wholeNumber('holdMs', holdMs, 0, LONGEST_MS)
      const { job, expiresAt, contents } = tickets.read(ticket)
      const { subject, hash } = contents
      const isOver = () => Date.now() >= expiresAt - CLOCK_ERROR_MS
      return await calls.untilClosed(signal, async (call) => {
        await calls.known(WAIT_MS, call)
        const leftMs = Math.min(holdMs, Math.max(0, expiresAt - Date.now()))
        const { verdict, isLost, ...expectation } = await backend.follow(job, { waitMs: leftMs, signal: call })
        calls.throwIfOver(signal)
        if (verdict === undefined && isOver()) throw new PasswordsError('ticket_expired', 'the ticket has expired')
        if (isLost) throw new PasswordsError('ticket_lost', 'the answer was lost; the first request may be sent again')
        if (verdict === undefined) {
          const paused = backend.load().paused ? { paused: true } : {}
          const answer = { ticket, ...told(expectation, holdMs, expiresAt - Date.now()), ...paused }
          return { outcome: 'waiting', answer }
        }
        // Read before the ticket is marked: what fails leaves the ticket good.
        const storedHash = verdict.kind === 'match' ? await currentHash(subject) : undefined
        const isMarked = await (markUsed?.(job.id, new Date(expiresAt + CLOCKS_APART_MS)) ?? true)
        if (!isMarked || !backend.take(job)) throw new PasswordsError('ticket_used', 'the ticket has been redeemed')
        const answer = await Promise.resolve(verdict).then(accepted).catch(orUnsupported)
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
      const verdict = await calls.run('hash', { password, policy: wanted }, call)
      if (verdict.kind === 'hashed' && isOf(verdict.hash, wanted)) return verdict.hash
      throw wrongPolicy()
    },
    async hashExactly(exact) {
      const verdict = await calls.run('hash', { password: '', exact }, {})
      if (verdict.kind === 'hashed' && verdict.hash.startsWith(exact.setting)) return verdict.hash
      throw wrongPolicy()
    },
    needsRehash: (storedHash, by) => isBelow(storedHash, by === undefined ? policy : completePolicy(by)),
    capacity() {
      const { known, workers, slots, jobsPerSecond, serviceMs, waiting, deferred, active } = backend.load()
      const predictedWaitMs = backend.predictedWaitMs()
      const figures = { workers, slots, jobsPerSecond, serviceMs, active, predictedWaitMs }
      return { by: backend.by, known, waiting: waiting + deferred, ...figures }
    },
    close: () => calls.close(),
  }
}

/** Chooses what hashes, by the options of an application. */
type BackendOptions = PasswordsOptions & { maxOutstanding: number; log: Logger }

function backendOf(program: URL, options: BackendOptions, policy: HashPolicy): Backend {
  const { redis, sealKeys, queuePrefix, traceparent, fallbackConcurrency = 0, maxOutstanding, inProcess, log } = options
  const beside = (concurrency: number | undefined) =>
    new BesideBackend({ program, settings: { policy, concurrency }, inProcess, log })
  wholeNumber('concurrency', options.concurrency ?? 1, 1, CONCURRENCY_MAX)
  if (!redis && !sealKeys) return beside(options.concurrency)
  if (!redis || !sealKeys)
    throw new TypeError('redis and sealKeys belong together: give both, or neither to hash beside')
  wholeNumber('fallbackConcurrency', fallbackConcurrency, 0, CONCURRENCY_MAX)
  const waitMs = Math.min(options.waitMs ?? WAIT_MS, ATTEMPT_MS)
  const queue = new QueueBackend({ redis, sealKeys, queuePrefix, waitMs, maxOutstanding, policy, traceparent, log })
  if (fallbackConcurrency === 0) return queue
  return new Fallback({ queue, openProcess: () => beside(fallbackConcurrency), log })
}

function wrongPolicy(): PasswordsError {
  return new PasswordsError('unsupported_policy', 'a worker made another kind of hash than it was asked for')
}

function assertText(what: string, value: unknown): void {
  if (typeof value !== 'string') throw new TypeError(`${what} must be a string`)
}
