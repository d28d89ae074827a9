/** Workers of a queue as what hashes for an application. */
import { PasswordClientError } from '../errors.js'
import { DEFAULT_QUEUE_PREFIX } from '../protocol/job.js'
import { parseKeyring, SEAL_KEYS } from '../protocol/seal.js'
import { createPasswordClient } from '../queue-client.js'
import type { Backend } from './open-backend.js'
import { PasswordsError } from './passwords-error.js'
import type { Logger } from './types.js'

/** How long the first calls wait for the first reading of the queue. */
const FIRST_READING_MS = 2_000

export interface QueueOptions {
  redis: string
  sealKeys: string
  prefix: string | undefined
  waitMs: number
  traceparent: (() => string | undefined) | undefined
  log: Logger
}

/** Redis may be unreachable. */
export function openQueueBackend({
  redis,
  sealKeys,
  prefix = DEFAULT_QUEUE_PREFIX,
  waitMs,
  traceparent,
  log,
}: QueueOptions): Backend {
  const keyring = parseKeyring(sealKeys)
  const own = { jobLifeMs: waitMs, background: true, traceparent }
  const client = createPasswordClient({ redisUrl: redis, prefix, keyring, log, ...own })

  function refuseOtherKeys(): void {
    if (!client.hasOtherKeys()) return
    throw new PasswordsError('wrong_keys', `the workers have another ${SEAL_KEYS} than this application`)
  }

  return {
    by: 'workers',
    load: client.load,
    predictedWaitMs: () => client.predictedWaitMs('held'),
    whenKnown: (leftMs) => client.whenKnown(Math.min(leftMs, FIRST_READING_MS)),
    async perform(name, request, { waitMs: leftMs, signal }) {
      refuseOtherKeys()
      const deadline = performance.now() + leftMs
      try {
        const pending = await client.submit(name, request, 'held', Math.ceil(leftMs))
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
      }
    },
    async begin(request, lifeMs) {
      refuseOtherKeys()
      const pending = await client.submit('verify', request, 'deferred', lifeMs, 0).catch(rethrown)
      // From now on whoever has the ticket waits, here or elsewhere.
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
