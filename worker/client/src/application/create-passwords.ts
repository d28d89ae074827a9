/** Passwords as an application calls them, whatever hashes behind them. */
import { randomBytes } from 'node:crypto'
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { openWaitMs } from '@spillway/queue/order'
import { ticketTimes } from '@spillway/queue/tickets'
import { newId } from '@spillway/queue/wire/id'
import type { Requests } from '@spillway/queue/wire/job'
import {
  bcryptReadsWhole,
  CONCURRENCY_MAX,
  completePolicy,
  type HashPolicy,
  refuseUnknown,
  wholeNumber,
} from '@spillway/queue/wire/policy'
import { parseKeyring } from '@spillway/queue/wire/seal'
import type { ExactHash } from '@spillway/queue/wire/setting'
import { isBelow, isOf } from '@spillway/queue/wire/stored-hash'
import type { Backend } from './backend.js'
import { BesideBackend } from './beside/backend.js'
import { endUnlessApplication } from './beside/one-file.js'
import { PasswordsError } from './passwords-error.js'
import { QueueBackend } from './queue-backend.js'
import { type Answered, accepted, LONGEST_MS, RunningCalls, WAIT_MS } from './running-calls.js'
import { type ApplicationTicket, ApplicationTickets } from './tickets.js'
import type { Logger, Passwords, PasswordsOptions, VerifyOptions } from './types.js'

/** The same as at gateways. */
const TICKET_LIFE_MS = 300_000
const MAX_OUTSTANDING = 10_000
/** How far the clocks of an application's processes and its database may be apart. */
const CLOCKS_APART_MS = 300_000
/** After a wait until the expiry a timer may be some milliseconds early. */
const CLOCK_ERROR_MS = 100

const OPTIONS: Record<keyof PasswordsOptions, true> = {
  ...{ redis: true, sealKeys: true, queuePrefix: true, traceparent: true },
  ...{ policy: true, rehash: true, waitMs: true, maxOutstanding: true, concurrency: true, inProcess: true },
  ...{ markUsed: true, log: true },
}

const consoleLog: Logger = {
  error: (facts, message) => console.error(`spillway: ${message}`, facts),
  warn: (facts, message) => console.warn(`spillway: ${message}`, facts),
  info: () => undefined,
  debug: () => undefined,
}

endUnlessApplication()

/** A file of the package. If it is missing, the first call rejects with `not_installed`. */
const HASHING_PROGRAM = new URL('./hashing-program.cjs', import.meta.url)

/** What the drop-in replacements of other packages need in addition. */
export interface ExactPasswords extends Passwords {
  /** Makes a hash with a given setting: the setting, a `$` if it is argon2, and the digest. */
  hashExactly(exact: ExactHash): Promise<string>
  /** `verify`, which rejects with `unsupported_hash` instead of resolving with false. */
  verifyExactly(password: string, storedHash: string): Promise<boolean>
}

/** Under Jest and Vitest each test file has a process or thread, which hashes itself. */
export function openPasswords(options: PasswordsOptions): ExactPasswords {
  const { inProcess = Boolean(process.env.JEST_WORKER_ID || process.env.VITEST) } = options
  return createPasswordsWith(HASHING_PROGRAM, { ...options, inProcess })
}

/** @param program the process beside, if there is no queue or the queue does not answer */
export function createPasswordsWith(program: URL, options: PasswordsOptions): ExactPasswords {
  refuseUnknown('options', options, OPTIONS)
  const { rehash = 'when-weaker', waitMs, maxOutstanding = MAX_OUTSTANDING, markUsed, log = consoleLog } = options
  if (waitMs !== undefined && waitMs !== Number.POSITIVE_INFINITY) wholeNumber('waitMs', waitMs, 1, LONGEST_MS)
  wholeNumber('maxOutstanding', maxOutstanding, 1, Number.MAX_SAFE_INTEGER)
  const policy = completePolicy(options.policy)
  const backend = backendOf(program, { ...options, log }, policy)
  const keyring = parseKeyring(options.sealKeys || `own:${randomBytes(32).toString('base64')}`)
  const calls = new RunningCalls(backend, { waitMs, maxOutstanding })
  const tickets = new ApplicationTickets(keyring)
  const unsupported = new ThrottledWarning(log, 'no password matches a stored hash')

  /**
   * Verifies a password with a stored hash, and again with a hash that replaced it meanwhile.
   * Returns the verified hash and its result; undefined for a hash that nothing verifies.
   */
  async function verifyCurrent(
    request: Requests['verify'],
    { currentHash, deadline = Date.now() + calls.usualMs(), signal }: VerifyOptions,
  ): Promise<{ storedHash: string | null; result: Answered | undefined }> {
    const { storedHash } = request
    const result = await calls.run('verify', request, { deadline, signal }).catch(orUnsupported)
    if (result?.kind !== 'match' || currentHash === undefined) return { storedHash, result }
    const current = (await currentHash()) ?? null
    if (current === storedHash) return { storedHash, result }
    if (current === null) return { storedHash, result: { kind: 'mismatch' } }
    return await verifyCurrent({ ...request, storedHash: current }, { currentHash, deadline, signal })
  }

  /** Throws without `markUsed`: a writer to Redis may restore old data, and only the database knows. */
  function marks(): NonNullable<PasswordsOptions['markUsed']> {
    if (markUsed !== undefined) return markUsed
    throw new TypeError('tickets need a queue, and the option markUsed, which marks them as used in your database')
  }

  /** Throws all errors except that of a stored hash that nothing verifies. */
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
      const { result, storedHash } = await verifyCurrent(request, options)
      if (result === undefined) await onUnsupported?.()
      if (result?.kind !== 'match' || storedHash === null) return false
      // A hash of another policy was made by a worker that knows no policies.
      if (wantsNew && result.hash !== undefined && isOf(result.hash, policy)) await onRehash(result.hash, storedHash)
      return true
    },
    async verifyExactly(password, storedHash) {
      const result = await calls.run('verify', { password, storedHash, policy, rehash: false }, {})
      return result.kind === 'match'
    },
    async begin(password, storedHash, { subject, lifeMs = TICKET_LIFE_MS, rehash: wantsNew = false } = {}) {
      marks()
      assertText('the password', password)
      if (storedHash !== null) assertText('the stored hash', storedHash)
      if (subject !== undefined) assertText('the subject', subject)
      wholeNumber('lifeMs', lifeMs, 1, LONGEST_MS)
      return await calls.untilClosed(undefined, async (call) => {
        await calls.known(WAIT_MS, call)
        const request = { password, storedHash, policy, rehash: wantsNew }
        const contents = { request, ...(subject === undefined ? {} : { subject }) }
        const times = { deadline: backend.now() + lifeMs, expiresAt: Date.now() + lifeMs }
        const ticket: ApplicationTicket = { id: newId(), name: 'verify', attempt: 0, ...times, contents }
        const { attempt, number } = await calls.begin(ticket, lifeMs, call)
        return tickets.issue({ ...ticket, attempt, number })
      })
    },
    async redeem(text, options) {
      const mark = marks()
      assertText('the ticket', text)
      const { currentHash, holdMs = WAIT_MS, signal } = options ?? {}
      if (typeof currentHash !== 'function')
        throw new TypeError('redeem needs the option currentHash, which reads the stored hash of a subject')
      wholeNumber('holdMs', holdMs, 0, LONGEST_MS)
      const ticket = tickets.open(text)
      const { request, subject } = ticket.contents
      const lifeMs = () => Math.max(0, ticket.deadline - CLOCK_ERROR_MS - backend.now())
      return await calls.untilClosed(signal, async (call) => {
        await calls.known(WAIT_MS, call)
        if (lifeMs() === 0) throw expired()
        const { result, attempt, number, position, etaMs } = await calls.redeem(ticket, holdMs, lifeMs(), call)
        calls.throwIfOver(signal)
        if (result === undefined) {
          if (lifeMs() === 0) throw expired()
          const next = tickets.issue({ ...ticket, attempt, number })
          const paused = backend.load().paused ? { paused: true } : {}
          return { outcome: 'waiting', answer: { ticket: next, position, ...ticketTimes(etaMs, lifeMs()), ...paused } }
        }
        // Read before the ticket is marked: after a failure the ticket stays valid.
        const storedHash = result.kind === 'match' ? await currentHash(subject) : undefined
        const isFirst = await mark(ticket.id, new Date(ticket.expiresAt + CLOCKS_APART_MS))
        if (!isFirst) throw new PasswordsError('ticket_used', 'the ticket has been redeemed')
        const answer = await Promise.resolve(result).then(accepted).catch(orUnsupported)
        if (answer?.kind !== 'match') return { outcome: 'mismatch', subject }
        if (typeof storedHash !== 'string' || storedHash !== request.storedHash)
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
      const result = await calls.run('hash', { password, policy: wanted }, call)
      if (result.kind === 'hashed' && isOf(result.hash, wanted)) return result.hash
      throw wrongPolicy()
    },
    async hashExactly(exact) {
      const result = await calls.run('hash', { password: '', exact }, {})
      if (result.kind === 'hashed' && result.hash.startsWith(exact.setting)) return result.hash
      throw wrongPolicy()
    },
    needsRehash: (storedHash, by) => isBelow(storedHash, by === undefined ? policy : completePolicy(by)),
    capacity() {
      const load = backend.load()
      const { known, workers, slots, jobsPerSecond, serviceMs, open, line, active } = load
      const figures = { workers, slots, jobsPerSecond, serviceMs, active, predictedWaitMs: openWaitMs(load) }
      return { by: backend.by, known, waiting: open + line, ...figures }
    },
    close: () => calls.close(),
  }
}

/** Chooses what hashes, by the options of an application. */
function backendOf(program: URL, options: PasswordsOptions & { log: Logger }, policy: HashPolicy): Backend {
  const { redis, sealKeys, queuePrefix, traceparent, inProcess, concurrency, log } = options
  wholeNumber('concurrency', concurrency ?? 1, 1, CONCURRENCY_MAX)
  if (!redis && !sealKeys) return new BesideBackend({ program, settings: { policy, concurrency }, inProcess, log })
  if (!redis || !sealKeys)
    throw new TypeError('redis and sealKeys belong together: give both, or neither to hash beside')
  return new QueueBackend({ redis, sealKeys, queuePrefix, traceparent, log })
}

function expired(): PasswordsError {
  return new PasswordsError('ticket_expired', 'the ticket has expired')
}

function wrongPolicy(): PasswordsError {
  return new PasswordsError('unsupported_policy', 'a worker made another kind of hash than it was asked for')
}

function assertText(what: string, value: unknown): void {
  if (typeof value !== 'string') throw new TypeError(`${what} must be a string`)
}
