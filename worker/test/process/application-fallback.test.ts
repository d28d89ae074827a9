// An application whose queue is silent: a process beside it takes over, and gives back.
import assert from 'node:assert/strict'
import type { PasswordsOptions } from '@spillway/client/application/types'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { argon2id, besideProgram, passwordsOf, rejectsWith } from '../application.ts'
import { startedWorker, workerFor } from '../parts.ts'
import { redisProxy, type Space, spaceFor, waitingJobs } from '../space.ts'
import { startedWorkerProcess } from '../worker-process.ts'

const withFallback = (space: Space, options: PasswordsOptions = {}) =>
  passwordsOf(space, { fallbackConcurrency: 1, ...options }, besideProgram)

test.concurrent('without a worker the process beside answers, those that waited as well, until a worker comes', async (t) => {
  const space = spaceFor(t)
  const passwords = withFallback(space)
  await until(() => passwords.capacity().known)
  const stored = await passwords.hash('correct horse')
  assert.match(stored, /^\$argon2id\$v=19\$m=64,t=1,p=1\$/)
  assert.deepEqual([passwords.capacity().by, passwords.capacity().slots], ['process', 1])
  const verified = await Promise.all(['correct horse', 'wrong'].map((password) => passwords.verify(password, stored)))
  assert.deepEqual(verified, [true, false])
  await until(async () => (await waitingJobs(space)).length === 0, { what: 'no job of a call that was answered' })

  await startedWorker(space)
  await until(() => passwords.capacity().by === 'workers', { what: 'the worker' })
  assert.equal(await passwords.verify('correct horse', stored), true)
})

test.concurrent('the only worker is killed in the middle of its calls: all are answered, and rightly', async (t) => {
  const space = spaceFor(t)
  const worker = await startedWorkerProcess(space, { WORKER_CONCURRENCY: '1', HASH_ENGINE: 'packages' })
  const passwords = withFallback(space)
  await until(() => passwords.capacity().slots > 0, { what: 'the worker' })
  const stored = await passwords.hash('right')
  worker.signal('SIGSTOP')
  // Node warns of a leak where more than ten listen to one signal of ours.
  const warnings: Error[] = []
  const warned = (warning: Error) => void warnings.push(warning)
  process.on('warning', warned)
  t.onTestFinished(() => void process.off('warning', warned))
  const calls = Array.from({ length: 30 }, (_, n) => passwords.verify(n % 2 === 0 ? 'right' : 'wrong', stored))
  await until(async () => (await waitingJobs(space)).length >= 20)
  worker.signal('SIGKILL')
  const right = Array.from(calls, (_, n) => n % 2 === 0)
  assert.deepEqual(await Promise.all(calls), right)
  assert.equal(passwords.capacity().by, 'process')
  assert.ok(!warnings.some(({ name }) => name === 'MaxListenersExceededWarning'))
})

test.concurrent('Redis goes away and comes back: no call fails', async (t) => {
  const { space } = await workerFor(t)
  const proxy = await redisProxy(space)
  const passwords = withFallback(space, { redis: proxy.url })
  await until(() => passwords.capacity().slots > 0, { what: 'the worker' })
  const stored = await passwords.hash('right')
  proxy.refuse()
  const calls = Array.from({ length: 20 }, () => passwords.verify('right', stored))
  assert.ok((await Promise.all(calls)).every(Boolean))
  await until(() => passwords.capacity().by === 'process', { what: 'the process' })
  assert.equal(await passwords.verify('wrong', stored), false)
  proxy.restore()
  await until(() => passwords.capacity().by === 'workers', { what: 'the worker again' })
  assert.equal(await passwords.verify('right', stored), true)
})

test.concurrent('a Redis that was never there keeps nobody from hashing', async (t) => {
  const passwords = withFallback(spaceFor(t), { redis: 'redis://127.0.0.1:1' })
  assert.match(await passwords.hash('x'), /^\$argon2id/)
})

test.concurrent('the process is as bounded as any: what it cannot do in time is refused', async (t) => {
  const space = spaceFor(t)
  const passwords = withFallback(space)
  const slow = { ...argon2id, memoryKib: 19_456, time: 8 }
  const outcomesOfMany = async () => {
    const calls = Array.from({ length: 50 }, () => passwords.hash('x', slow, { deadline: Date.now() + 500 }))
    return (await Promise.allSettled(calls)).map((call) => (call.status === 'rejected' ? call.reason.code : 'hashed'))
  }
  await passwords.hash('x', slow)
  assert.equal(passwords.capacity().by, 'process')
  // It learns what these take.
  await until(
    async () => {
      const outcomes = await outcomesOfMany()
      assert.ok(
        outcomes.every((outcome) => ['busy', 'expired', 'hashed'].includes(outcome)),
        outcomes.join(),
      )
      return outcomes.filter((outcome) => outcome === 'busy').length > 10
    },
    { what: 'calls refused before they begin' },
  )
})

test.concurrent('a signal ends a call that was moved, and closing ends all and the process', async (t) => {
  const space = spaceFor(t)
  const passwords = withFallback(space, { waitMs: Number.POSITIVE_INFINITY })
  await passwords.hash('x')
  const abort = new AbortController()
  const slow = { ...argon2id, memoryKib: 65_536, time: 12 }
  const waiting = [passwords.hash('x', slow), passwords.hash('y', slow, { signal: abort.signal })]
  abort.abort(new Error('of no use'))
  await assert.rejects(waiting[1] ?? Promise.resolve(), /of no use/)
  const ended = rejectsWith('closed', waiting[0] ?? Promise.resolve())
  await passwords.close()
  await ended
})

test.concurrent('a number of hashes that is none is told at once', (t) => {
  for (const fallbackConcurrency of [-1, 0.5, Number.NaN])
    assert.throws(() => withFallback(spaceFor(t), { fallbackConcurrency }), /fallbackConcurrency/)
})
