/** The workers of a queue as what hashes for an application. */
import { PasswordClientError } from '@spillway/queue/errors'
import { ABSENT_SHARE } from '@spillway/queue/jobs/lanes'
import { parseRedisServers } from '@spillway/queue/redis/servers'
import type { PendingJob } from '@spillway/queue/wait/answers'
import { LoadState } from '@spillway/queue/wait/load-state'
import type { PasswordClient } from '@spillway/queue/wait/password-client'
import type { Load } from '@spillway/queue/wire/capacity'
import { DEFAULT_QUEUE_PREFIX, type JobName, type Requests, type Verdict } from '@spillway/queue/wire/job'
import type { HashPolicy } from '@spillway/queue/wire/policy'
import type { JobRef } from '@spillway/queue/wire/reply'
import { parseKeyring, refuseGuessableKeys, SEAL_KEYS } from '@spillway/queue/wire/seal'
import { Tally, workOfRequest } from '@spillway/queue/wire/work'
import { type Backend, type Followed, type PerformOptions, withOwnWork } from './backend.js'
import { PasswordsError } from './passwords-error.js'
import type { Logger } from './types.js'

/** How long the first calls wait for the first reading of the queue. */
const FIRST_READING_MS = 2_000
const UNKNOWN = new LoadState().current()

interface QueueOptions {
  redis: string
  sealKeys: string
  queuePrefix?: string | undefined
  waitMs: number
  maxOutstanding: number
  policy: HashPolicy
  traceparent?: (() => string | undefined) | undefined
  log: Logger
}

export class QueueBackend implements Backend {
  readonly by = 'workers'
  readonly #policy: HashPolicy
  readonly #opening: Promise<PasswordClient>
  /** Once its code is loaded. */
  #client: PasswordClient | undefined
  /** The work of calls that wait here, and how many of these are on their way to the queue. */
  readonly #work = new Tally()
  #underway = 0

  /** Throws for invalid keys and addresses. Redis may be unreachable. */
  constructor({ redis, sealKeys, queuePrefix, waitMs, maxOutstanding, policy, traceparent, log }: QueueOptions) {
    refuseGuessableKeys(SEAL_KEYS, sealKeys)
    parseRedisServers(redis)
    const keyring = parseKeyring(sealKeys)
    this.#policy = policy
    // Loaded for applications that have a queue alone: it takes longer to load than many a program
    // runs.
    this.#opening = import('@spillway/queue/queue-client').then(({ createPasswordClient }) => {
      this.#client = createPasswordClient({
        ...{ redisUrl: redis, prefix: queuePrefix ?? DEFAULT_QUEUE_PREFIX, keyring, jobLifeMs: waitMs, log },
        ...{ maxAbsent: Math.ceil(maxOutstanding * ABSENT_SHARE), background: true, traceparent },
      })
      return this.#client
    })
    // The calls tell.
    this.#opening.catch(() => undefined)
  }

  /** Calls of one moment must not all see the queue before them. */
  load(): Load {
    const read = this.#client?.load() ?? UNKNOWN
    return withOwnWork({ ...read, waiting: read.waiting + this.#underway }, this.#work)
  }

  predictedWaitMs(): number {
    return this.#client?.predictedWaitMs('held') ?? Number.POSITIVE_INFINITY
  }

  async whenKnown(waitMs: number): Promise<void> {
    await (await this.#opening).whenKnown(Math.min(waitMs, FIRST_READING_MS))
  }

  async perform<Name extends JobName>(
    name: Name,
    request: Requests[Name],
    { waitMs, signal }: PerformOptions,
  ): Promise<Verdict | undefined> {
    // Not awaited once it is open: a call counts as soon as it is let in.
    const client = this.#client ?? (await this.#opening)
    refuseOtherKeys(client)
    const deadline = performance.now() + waitMs
    const work = workOfRequest(request, this.#policy)
    this.#work.add(work)
    this.#underway += 1
    const submitting = client.submit(name, request, { lifeMs: Math.ceil(waitMs) }).finally(() => {
      this.#underway -= 1
    })
    let pending: PendingJob | undefined
    let answer: Verdict | undefined
    try {
      pending = await submitting
      answer = await pending.answer({ waitMs: Math.max(0, deadline - performance.now()), signal })
      return answer
    } catch (error) {
      if (isAbort(error)) return undefined
      throw asPasswordsError(error)
    } finally {
      if (pending !== undefined && answer === undefined) void client.cancel(pending.job)
      this.#work.remove(work)
    }
  }

  async begin(request: Requests['verify'], lifeMs: number): Promise<JobRef> {
    const client = await this.#opening
    refuseOtherKeys(client)
    const pending = await client.submit('verify', request, { lane: 'deferred', lifeMs, waitMs: 0 }).catch(rethrown)
    // From now on the holder of the ticket waits, here or elsewhere.
    void pending.answer({ waitMs: 0 })
    return pending.job
  }

  async follow(job: JobRef, { waitMs, signal }: PerformOptions): Promise<Followed> {
    const client = await this.#opening
    const pending = await client.resume(job, waitMs).catch(rethrown)
    const { isLost } = pending
    try {
      const verdict = await pending.answer({ waitMs: isLost ? 0 : waitMs, signal })
      return { verdict, isLost: isLost && verdict === undefined, ...(await pending.expectation()) }
    } catch (error) {
      if (!isAbort(error)) throw asPasswordsError(error)
      void client.left(job)
      return { verdict: undefined, isLost: false, ahead: undefined, waitMs: 0 }
    }
  }

  take(): boolean {
    return true
  }

  async close(): Promise<void> {
    await (await this.#opening).close()
  }
}

function refuseOtherKeys(client: PasswordClient): void {
  if (!client.hasOtherKeys()) return
  throw new PasswordsError('wrong_keys', `the workers have another ${SEAL_KEYS} than this application`)
}

function isAbort(error: unknown): boolean {
  return error instanceof PasswordClientError && error.code === 'wait_aborted'
}

function rethrown(error: unknown): never {
  throw asPasswordsError(error)
}

function asPasswordsError(error: unknown): unknown {
  if (!(error instanceof PasswordClientError)) return error
  if (error.code === 'request_too_long')
    return new PasswordsError('unsupported_password', 'the password is longer than the queue takes')
  return new PasswordsError('queue_unavailable', error.message, { cause: error })
}
