// An application's passwords, hashed by workers: answers, policies, refusals, deadlines.
import assert from 'node:assert/strict'
import { createPasswordsWith } from '@spillway/client/application/create-passwords'
import type { Passwords, PasswordsOptions } from '@spillway/client/application/types'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { readyClient, sealKeys, startedWorker, submit, workerFor } from '../../../test/parts.ts'
import { redisProxy, type Space, spaceFor, waitingJobs } from '../../../test/space.ts'
import { noProgram, passwordsOf, rejectsWith } from '../passwords.ts'

/** Answered after everything here. It keeps the one slot of a worker that stops without waiting. */
const SLOW = '$spillway-wait$60000$'
const slowWorker = { SHUTDOWN_GRACE_MS: '0', HASH_ENGINE: 'packages' }

/** Keeps a worker busy beyond what it has in hand, and gives the jobs that wait behind that. */
async function occupied(
  space: Space,
  { jobs = 6, env = {} }: { jobs?: number; env?: Record<string, string> } = {},
): Promise<() => Promise<string[]>> {
  await startedWorker(space, { slots: 1, env: { ...slowWorker, ...env } })
  const client = await readyClient(space)
  const slow: string[] = []
  for (let n = 0; n < jobs; n += 1)
    slow.push((await submit(client, 'verify', { password: 'x', storedHash: SLOW })).job.id)
  return async () => (await waitingJobs(space)).filter((id) => !slow.includes(id))
}

async function knowsWorkers(passwords: Passwords): Promise<void> {
  await until(() => passwords.capacity().slots > 0, { what: 'a worker that the application knows of' })
}

test.concurrent('what is not answered by its deadline expires, and leaves the queue', async (t) => {
  const space = spaceFor(t)
  const jobs = await occupied(space)
  const passwords = passwordsOf(space)
  await knowsWorkers(passwords)
  const expiring = rejectsWith('expired', passwords.verify('x', null, { deadline: new Date(Date.now() + 4_000) }))
  await until(async () => (await jobs()).length === 1)
  await expiring
  await until(async () => (await jobs()).length === 0)
  await rejectsWith('expired', passwords.verify('x', null, { deadline: Date.now() }))
  await assert.rejects(passwords.verify('x', null, { deadline: new Date('never') }), TypeError)
})

test.concurrent('a signal ends a call with its reason, and takes the job out of the queue', async (t) => {
  const space = spaceFor(t)
  const jobs = await occupied(space)
  const passwords = passwordsOf(space)
  await knowsWorkers(passwords)
  const caller = new AbortController()
  const verifying = passwords.verify('x', null, { signal: caller.signal })
  await until(async () => (await jobs()).length === 1)
  caller.abort(new Error('went away'))
  await assert.rejects(verifying, /went away/)
  await until(async () => (await jobs()).length === 0)
  await assert.rejects(passwords.hash('x', undefined, { signal: AbortSignal.abort(new Error('was away')) }), /was away/)
})

test.concurrent('without Redis calls are refused by their code, and work again when it is back', async (t) => {
  const { space } = await workerFor(t)
  const proxy = await redisProxy(space)
  const log = { error() {}, warn() {}, info() {}, debug() {} }
  const passwords = passwordsOf(space, { redis: proxy.url, log })
  await knowsWorkers(passwords)
  proxy.refuse()
  await rejectsWith('queue_unavailable', passwords.hash('x'))
  proxy.restore()
  await until(() => passwords.capacity().slots > 0)
  assert.match(await passwords.hash('x'), /^\$argon2id/)
})

test.concurrent('half of what a queue needs, wrong keys and a wrong policy are told at once', () => {
  const create = (options: PasswordsOptions) => () => createPasswordsWith(noProgram, options)
  const redis = 'redis://127.0.0.1:1'
  assert.throws(create({ redis }), /redis and sealKeys belong together/)
  assert.throws(create({ sealKeys }), /redis and sealKeys belong together/)
  assert.throws(create({ redis, sealKeys: 'k1:short' }), /32 bytes/)
  assert.throws(create({ redis: 'http://127.0.0.1', sealKeys }), /redis:\/\//)
  assert.throws(create({ policy: { algorithm: 'bcrypt', cost: 3 } }), RangeError)
  for (const number of [0, -1, 1.5, Number.NaN]) {
    for (const option of ['concurrency', 'waitMs', 'maxOutstanding'])
      assert.throws(create({ [option]: number }), RangeError, option)
  }
  assert.throws(create({ policy: { algorithm: 'argon2id', memoryKib: 15, parallelism: 2 } }), RangeError)
})
