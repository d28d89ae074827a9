// Dropped jobs: their deadline passes before a thread begins, or would pass before the answer.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createLogger } from '@spillway/common/log'
import { RedisClock } from '@spillway/queue/redis/clock'
import { type JobRef, requestSeal, verdictSeal } from '@spillway/queue/wire/reply'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { test } from 'vitest'
import { processJob } from '../../src/consumer/process-job.ts'
import { Hasher } from '../../src/hashing/index.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { WorkerMetrics } from '../../src/ops/metrics.ts'

const keyring = parseKeyring(`test:${randomBytes(32).toString('base64')}`)
const load = () => Hasher.load(argon2idPolicy({ memoryKib: 64, time: 1, parallelism: 1 }), {})
const hasher = await load()
const parts = {
  ...{ keyring, metrics: new WorkerMetrics(), clock: new RedisClock() },
  log: createLogger({ service: 'test', level: 'silent' }),
}

/** A verify that is to be answered within so many milliseconds. */
async function incoming(lifeMs: number) {
  const enqueuedAt = Date.now()
  const job: JobRef = { id: 'job', name: 'verify', deadline: enqueuedAt + lifeMs }
  const sealed = keyring.seal(requestSeal(job), { password: 'wrong', storedHash: await hasher.hash('right') })
  return { ...job, data: { deadline: job.deadline, enqueuedAt, replyTo: 'reply', sealed }, attemptsStarted: 1 }
}

test('a job in hand that no thread has begun with at its deadline is dropped, and not answered', async () => {
  let wasTakenBack = false
  const busy: Hasher = Object.assign(await load(), {
    ofOwner: () => busy,
    verify: (_password: unknown, _stored: unknown, signal?: AbortSignal) =>
      new Promise<boolean>((resolve, reject) => {
        const late = setTimeout(() => resolve(false), 20_000)
        signal?.addEventListener('abort', () => {
          clearTimeout(late)
          wasTakenBack = true
          reject(signal.reason)
        })
      }),
  })
  const result = await processJob(await incoming(300), {
    ...{ ...parts, hasher: busy },
    delivery: {
      deliver: () => Promise.reject(new Error('it was answered')),
      stored: async () => undefined,
      setAside: () => assert.fail(),
    },
  })
  assert.equal(result?.outcome, 'expired')
  assert.equal(wasTakenBack, true)
})

test('a job that can only be answered too late is not hashed, and its client is told', async () => {
  const job = await incoming(60_000)
  const foretold: (number | undefined)[] = []
  const delivered: string[] = []
  const idle: Hasher = Object.assign(await load(), { ofOwner: () => idle, verify: () => assert.fail('it was hashed') })
  const result = await processJob(job, {
    ...{ ...parts, hasher: idle },
    isTooLate: (leftMs, foretoldMs) => foretold.push(foretoldMs) === 1 && leftMs <= 60_000,
    delivery: {
      deliver: async (_, sealed) => void delivered.push(sealed),
      stored: async () => undefined,
      setAside: () => assert.fail(),
    },
  })
  assert.equal(result?.outcome, 'expired')
  assert.deepEqual(foretold, [idle.foretell({ password: '' })])
  const verdicts = delivered.map((sealed) => keyring.open(verdictSeal(job), sealed))
  assert.deepEqual(verdicts, [{ kind: 'refused', code: 'expired' }])
})
