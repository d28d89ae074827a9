/** Workers of a queue as what hashes for an application. */
import { PasswordClientError } from '../errors.js'
import { DEFAULT_QUEUE_PREFIX } from '../protocol/job.js'
import { parseKeyring, SEAL_KEYS } from '../protocol/seal.js'
import { createPasswordClient } from '../queue-client.js'
import type { Backend } from './backend.js'
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
  return {
    by: 'workers',
    load: client.load,
    predictedWaitMs: () => client.predictedWaitMs('held'),
    whenKnown: (leftMs) => client.whenKnown(Math.min(leftMs, FIRST_READING_MS)),
    async perform(name, request, { waitMs: leftMs, signal }) {
      if (client.hasOtherKeys())
        throw new PasswordsError('wrong_keys', `the workers have another ${SEAL_KEYS} than this application`)
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
        if (!(error instanceof PasswordClientError)) throw error
        if (error.code === 'wait_aborted') return undefined
        if (error.code === 'request_too_long')
          throw new PasswordsError('unsupported_password', 'the password is longer than the queue takes')
        throw new PasswordsError('queue_unavailable', error.message, { cause: error })
      }
    },
    close: client.close,
  }
}
