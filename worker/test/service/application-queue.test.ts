// An application's passwords, hashed by workers: answers, policies, refusals, deadlines.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createPasswordsWith } from '@spillway/client/application/create-passwords'
import type { Passwords, PasswordsOptions } from '@spillway/client/application/types'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { RedisClock } from '@spillway/queue/redis/clock'
import { connectRedis } from '@spillway/queue/redis/connect'
import { isHashRequest, isVerifyRequest, type JobData, QUEUE_NAME } from '@spillway/queue/wire/job'
import { type JobRef, requestSeal, verdictSeal } from '@spillway/queue/wire/reply'
import { Worker } from 'bullmq'
import { test } from 'vitest'
import { Delivery } from '../../src/consumer/deliver.ts'
import { Hasher } from '../../src/hashing/index.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { argon2id, bcryptHash, noProgram, passwordsOf, rejectsWith } from '../application.ts'
import {
  jobsAreCounted,
  keepingLog,
  keyring,
  policy,
  readyClient,
  sealKeys,
  startedWorker,
  workerFor,
} from '../parts.ts'
import { redisProxy, type Space, spaceFor, waitingJobs } from '../space.ts'

const bcrypt = { algorithm: 'bcrypt', cost: 4 } as const
/** Answered after everything here. It keeps the one slot of a worker that stops without waiting. */
const SLOW = '$spillway-wait$60000$'
const slowWorker = { SHUTDOWN_GRACE_MS: '0', HASH_ENGINE: 'packages' }

/** As workers were before policies: unknown fields are dropped, new hashes are argon2id */
async function workerWithoutPolicies({ redisUrl, prefix, closing }: Space): Promise<void> {
  const hasher = await Hasher.load(argon2idPolicy(policy), { testHashes: false })
  const redis = connectRedis(redisUrl, 'consumer')
  const delivery = new Delivery({
    redis,
    prefix,
    clock: new RedisClock(),
    log: createLogger({ service: 'test', level: 'silent' }),
  })
  const worker = new Worker<JobData>(
    QUEUE_NAME,
    async ({ id = '', name, data }) => {
      const job: JobRef = { id, name: name === 'hash' ? name : 'verify', deadline: data.deadline }
      const request = keyring.open(requestSeal(job), data.sealed)
      const isVerify = isVerifyRequest(request)
      assert.ok(isVerify || isHashRequest(request))
      const hash = await hasher.hash(request.password)
      const verdict = isVerify ? { kind: 'match', hash } : { kind: 'hashed', hash }
      await delivery.deliver({ ...job, replyTo: data.replyTo }, keyring.seal(verdictSeal(job), verdict))
    },
    { connection: redis, prefix },
  )
  closing(async () => {
    await worker.close()
    redis.disconnect()
  })
}

/** Keeps a worker busy beyond what it has in hand, and gives the jobs that wait behind that. */
async function occupied(
  space: Space,
  { jobs = 6, env = {} }: { jobs?: number; env?: Record<string, string> } = {},
): Promise<() => Promise<string[]>> {
  await startedWorker(space, { slots: 1, env: { ...slowWorker, ...env } })
  const client = await readyClient(space)
  const slow: string[] = []
  for (let n = 0; n < jobs; n += 1)
    slow.push((await client.submit('verify', { password: 'x', storedHash: SLOW })).job.id)
  return async () => (await waitingJobs(space)).filter((id) => !slow.includes(id))
}

async function knowsWorkers(passwords: Passwords): Promise<void> {
  await until(() => passwords.capacity().slots > 0, { what: 'a worker that the application knows of' })
}

test.concurrent('a hash of another kind than was asked for is not one that an application would store', async (t) => {
  const space = spaceFor(t)
  const passwords = passwordsOf(space, { policy: bcrypt })
  await workerWithoutPolicies(space)
  await rejectsWith('unsupported_policy', passwords.hash('x'))
  const setting = bcryptHash.slice(0, 29).replace('2a', '2b')
  await rejectsWith('unsupported_policy', passwords.hashExactly({ setting, password: 'eA==' }))
  const onRehash = (hash: string) => assert.fail(`${hash} was to be stored`)
  const policyAbove = passwordsOf(space, { policy: { algorithm: 'bcrypt', cost: 6 } })
  assert.equal(await policyAbove.verify('U*U', bcryptHash, { onRehash }), true)
})

test.concurrent('what cannot be answered in time is refused before it is in the queue, with a time to come back', async (t) => {
  const space = spaceFor(t)
  // What the worker publishes is measured with its own policy.
  const jobs = await occupied(space, { jobs: 30, env: { ARGON2_MEMORY_KIB: '32768', ARGON2_TIME: '10' } })
  const passwords = passwordsOf(space)
  await until(() => passwords.capacity().waiting >= 20)
  const { predictedWaitMs } = passwords.capacity()
  const error = await rejectsWith('busy', passwords.hash('x', argon2id, { deadline: Date.now() + predictedWaitMs / 2 }))
  assert.ok(Number(error.retryAfterMs) >= 1_000)
  assert.deepEqual(await jobs(), [])
})

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

// Not beside the others here: their hashes would occupy the threads of this process.
test('what can only be answered too late is not begun by a worker that has other work, and expires', async (t) => {
  const { space, worker } = await workerFor(t, { slots: 2, env: { ...slowWorker, ARGON2_MEMORY_KIB: '8192' } })
  const client = await readyClient(space)
  await client.submit('verify', { password: 'x', storedHash: SLOW })
  // That is an answer: a process beside would hash it all the same, and has no program here.
  const passwords = passwordsOf(space, { fallbackConcurrency: 1 })
  await until(() => passwords.capacity().active === 1)
  // Takes a core more than a second.
  const dear = '$2b$15$CCCCCCCCCCCCCCCCCCCCC.jJXUjSlXZ2p6nRm3NJIupp3r/yrrjVy'
  await rejectsWith('expired', passwords.verify('U*U', dear, { deadline: Date.now() + 600 }))
  await jobsAreCounted(worker, 'verify expired 1')
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

test.concurrent('without a worker a call is let in for a moment, and refused when that is over', async (t) => {
  const space = spaceFor(t)
  const passwords = passwordsOf(space)
  await until(() => passwords.capacity().known)
  const error = await rejectsWith('no_worker', passwords.hash('x', argon2id, { deadline: Date.now() + 100 }))
  assert.ok(Number(error.retryAfterMs) > 0)
  // Who is let in waits until the deadline; who is refused does not.
  const refused = async () => {
    const call = passwords.hash('x', argon2id, { deadline: Date.now() + 600_000, signal: AbortSignal.timeout(1_000) })
    return await call.catch(({ code }) => code === 'no_worker')
  }
  await until(refused)
  await startedWorker(space)
  await knowsWorkers(passwords)
  assert.match(await passwords.hash('x'), /^\$argon2id/)
})

test.concurrent('a call that waits for a worker is answered by the next worker that starts', async (t) => {
  const space = spaceFor(t)
  const passwords = passwordsOf(space)
  await until(() => passwords.capacity().known)
  const hashing = passwords.hash('x')
  await until(async () => (await waitingJobs(space)).length === 1)
  await startedWorker(space)
  assert.match(await hashing, /^\$argon2id/)
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

test.concurrent('an application whose keys are not those of the workers is told so at once, until they are', async (t) => {
  const space = spaceFor(t)
  const others = `other:${randomBytes(32).toString('base64')}`
  const worker = await startedWorker(space, { env: { SPILLWAY_SEAL_KEYS: others } })
  const { lines, log } = keepingLog()
  const passwords = passwordsOf(space, { log })
  await knowsWorkers(passwords)
  const { message } = await rejectsWith('wrong_keys', passwords.hash('x'))
  assert.match(message, /SPILLWAY_SEAL_KEYS/)
  assert.equal((await waitingJobs(space)).length, 0)
  assert.ok(lines.some(({ reason }) => reason === 'the workers have another SPILLWAY_SEAL_KEYS'))
  await worker.close()
  // The next step of a rotation: both open what the other seals.
  await startedWorker(space, { env: { SPILLWAY_SEAL_KEYS: `${others},${sealKeys}` } })
  const rotated = passwordsOf(space, { sealKeys: `${sealKeys},${others}` })
  assert.match(await rotated.hash('x'), /^\$argon2id/)
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
