/** Workers of a queue as what hashes for an application. */
import { PasswordClientError } from '../errors.js'
import type { Load } from '../protocol/capacity.js'
import { DEFAULT_QUEUE_PREFIX, type JobName, type Requests } from '../protocol/job.js'
import type { HashPolicy } from '../protocol/policy.js'
import { parseKeyring, SEAL_KEYS } from '../protocol/seal.js'
import { createTally, workOfRequest } from '../protocol/work.js'
import { createPasswordClient } from '../queue-client.js'
import type { Backend } from './open-backend.js'
import { withOwnWork } from './own-work.js'
import { PasswordsError } from './passwords-error.js'
import type { Logger } from './types.js'

/** How long the first calls wait for the first reading of the queue. */
const FIRST_READING_MS = 2_000

export interface QueueOptions {
  redis: string
  sealKeys: string
  prefix: string | undefined
  waitMs: number
  policy: HashPolicy
  traceparent: (() => string | undefined) | undefined
  log: Logger
}

/** Redis may be unreachable. */
export function openQueueBackend({
  redis,
  sealKeys,
  prefix = DEFAULT_QUEUE_PREFIX,
  waitMs,
  policy,
  traceparent,
  log,
}: QueueOptions): Backend {
  const keyring = parseKeyring(sealKeys)
  const own = { jobLifeMs: waitMs, background: true, traceparent }
  const client = createPasswordClient({ redisUrl: redis, prefix, keyring, log, ...own })
  /** The work of calls that wait here, and how many of these are on their way to the queue. */
  const work = createTally()
  let underway = 0

  /** Calls of one moment must not all see the queue before them. */
  function load(): Load {
    const read = client.load()
    return withOwnWork({ ...read, waiting: read.waiting + underway }, work)
  }

  async function submit<Name extends JobName>(name: Name, request: Requests[Name], lifeMs: number) {
    underway += 1
    try {
      return await client.submit(name, request, 'held', lifeMs)
    } finally {
      underway -= 1
    }
  }

  function refuseOtherKeys(): void {
    if (!client.hasOtherKeys()) return
    throw new PasswordsError('wrong_keys', `the workers have another ${SEAL_KEYS} than this application`)
  }

  return {
    by: 'workers',
    load,
    predictedWaitMs: () => client.predictedWaitMs('held'),
    whenKnown: (leftMs) => client.whenKnown(Math.min(leftMs, FIRST_READING_MS)),
    async perform(name, request, { waitMs: leftMs, signal }) {
      refuseOtherKeys()
      const deadline = performance.now() + leftMs
      const ofCall = workOfRequest(request, policy)
      work.add(ofCall)
      try {
        const pending = await submit(name, request, Math.ceil(leftMs))
        try {
          const answer = await pending.answer({ waitMs: Math.max(0, deadline - performance.now()), signal })
          if (answer === undefined) void client.cancel(pending.job)
          return answer
        } catch (error) {
          void client.cancel(pending.job)
          throw error
        }
      } catch (error) {
        if (isAbort(error)) return undefined
        throw asPasswordsError(error)
      } finally {
        work.remove(ofCall)
      }
    },
    async begin(request, lifeMs) {
      refuseOtherKeys()
      const pending = await client.submit('verify', request, 'deferred', lifeMs, 0).catch(rethrown)
      // From now on the holder of the ticket waits, here or elsewhere.
      void pending.answer({ waitMs: 0 })
      return pending.job
    },
    async follow(job, { waitMs: leftMs, signal }) {
      const pending = await client.resume(job, leftMs).catch(rethrown)
      const { isLost } = pending
      try {
        const verdict = await pending.answer({ waitMs: isLost ? 0 : leftMs, signal })
        return { verdict, isLost: isLost && verdict === undefined, ...(await pending.expectation()) }
      } catch (error) {
        if (!isAbort(error)) throw asPasswordsError(error)
        void client.left(job)
        return { verdict: undefined, isLost: false, ahead: undefined, waitMs: 0 }
      }
    },
    take: () => true,
    close: client.close,
  }
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
