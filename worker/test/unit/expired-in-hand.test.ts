// A job whose deadline passes while it waits for a hashing thread.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { requestSeal } from '@spillway/client/protocol/reply'
import { parseKeyring } from '@spillway/client/protocol/seal'
import { createRedisClock } from '@spillway/client/redis/clock'
import { test } from 'vitest'
import { processJob } from '../../src/consumer/process-job.ts'
import { createHasher } from '../../src/hashing/index.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { createWorkerMetrics } from '../../src/ops/metrics.ts'
import { createLogger } from '../../src/process/log.ts'

test('a job in hand that no thread has begun with at its deadline is dropped, and not answered', async () => {
  const keyring = parseKeyring(`test:${randomBytes(32).toString('base64')}`)
  const hasher = await createHasher(argon2idPolicy({ memoryKib: 64, time: 1, parallelism: 1 }), {})
  const enqueuedAt = Date.now()
  const job = { id: 'job', name: 'verify', deadline: enqueuedAt + 300 } as const
  const sealed = keyring.seal(requestSeal(job), { password: 'wrong', storedHash: await hasher.hash('right') })
  let wasTakenBack = false
  const busy = {
    ...hasher,
    verify: (_password: unknown, _stored: unknown, signal?: AbortSignal) =>
      new Promise<boolean>((resolve, reject) => {
        const late = setTimeout(() => resolve(false), 20_000)
        signal?.addEventListener('abort', () => {
          clearTimeout(late)
          wasTakenBack = true
          reject(signal.reason)
        })
      }),
  }
  const result = await processJob(
    { ...job, data: { deadline: job.deadline, enqueuedAt, replyTo: 'reply', sealed }, attemptsStarted: 1 },
    {
      ...{ keyring, hasher: busy, metrics: createWorkerMetrics(), clock: createRedisClock() },
      log: createLogger({ service: 'test', level: 'silent' }),
      delivery: { deliver: () => Promise.reject(new Error('it was answered')), stored: async () => undefined },
    },
  )
  assert.equal(result.outcome, 'expired')
  assert.equal(wasTakenBack, true)
})
