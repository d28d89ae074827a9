import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import type { VerifyRequest } from '@spillway/queue/wire/job'
import { upgradeOf, verdictKey } from '@spillway/queue/wire/reply'
import type { RehashMode } from '@spillway/queue/wire/stored-hash'
import { test } from 'vitest'
import { Hasher } from '../../src/hashing/index.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { answerOf, clientFor, jobsAreCounted, policy, readyClient, startedWorker, workerFor } from '../parts.ts'
import { activeJobs, resultOf, type Space, spaceFor } from '../space.ts'

const hasher = await Hasher.load(argon2idPolicy(policy), { testHashes: false })

const bcryptHash = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'

async function verified(space: Space, request: VerifyRequest) {
  return await answerOf(await (await readyClient(space)).submit('verify', request))
}

/** The fresh hash of a match; fails for any other answer. */
function freshHash(answer: Awaited<ReturnType<typeof verified>>): string {
  assert.ok(typeof answer === 'object' && answer.kind === 'match')
  assert.ok(answer.hash !== undefined, 'the match brought no hash')
  return answer.hash
}

test('verify: the right password matches, a wrong one does not, and neither brings a hash', async (t) => {
  const { space } = await workerFor(t)
  const storedHash = await hasher.hash('correct horse')
  assert.deepEqual(await verified(space, { password: 'correct horse', storedHash }), { kind: 'match' })
  assert.deepEqual(await verified(space, { password: 'correct hors', storedHash }), { kind: 'mismatch' })
})

test('verify: without a stored hash nothing matches, whatever is to come next', async (t) => {
  const { space } = await workerFor(t)
  assert.deepEqual(await verified(space, { password: 'x', storedHash: null }), { kind: 'mismatch' })
  const withNext = { password: 'x', storedHash: null, nextPassword: 'y' }
  assert.deepEqual(await verified(space, withNext), { kind: 'mismatch' })
})

test('verify: the match of an old hash brings a new one of the same password, a mismatch does not', async (t) => {
  const { space } = await workerFor(t, { env: { ARGON2_TIME: '2' } })
  const old = { bcrypt: bcryptHash, argon2: await hasher.hash('U*U') }
  for (const storedHash of Object.values(old)) {
    const fresh = freshHash(await verified(space, { password: 'U*U', storedHash }))
    assert.match(fresh, /^\$argon2id\$v=19\$m=64,t=2,p=1\$/)
    assert.equal(await hasher.verify('U*U', fresh), true)
    assert.deepEqual(await verified(space, { password: 'u*u', storedHash }), { kind: 'mismatch' })
  }
})

test('verify with a next password: a match brings its hash, a mismatch brings nothing', async (t) => {
  const { space } = await workerFor(t)
  for (const storedHash of [await hasher.hash('U*U'), bcryptHash]) {
    const fresh = freshHash(await verified(space, { password: 'U*U', storedHash, nextPassword: 'next one' }))
    assert.equal(await hasher.verify('next one', fresh), true)
    assert.equal(await hasher.verify('U*U', fresh), false)
    const wrong = await verified(space, { password: 'wrong', storedHash, nextPassword: 'next one' })
    assert.deepEqual(wrong, { kind: 'mismatch' })
  }
})

test('verify: a stored hash that nothing here understands is refused with a code', async (t) => {
  const { space } = await workerFor(t)
  for (const storedHash of ['', 'plain text', '$2a$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW']) {
    const answer = await verified(space, { password: 'x', storedHash })
    assert.deepEqual(answer, { kind: 'refused', code: 'unsupported_hash' })
  }
})

test('verify: a stored hash that nothing here understands costs the work of a decoy', async (t) => {
  const { space } = await workerFor(t, { env: { ARGON2_MEMORY_KIB: '65536', ARGON2_TIME: '3' } })
  const client = await readyClient(space)
  for (const storedHash of ['plain text', null]) {
    const pending = await client.submit('verify', { password: 'x', storedHash, nextPassword: 'y' })
    await answerOf(pending)
    const result = await until(() => resultOf(space, pending.job.id))
    assert.ok(
      typeof result === 'object' && 'serviceMs' in result && Number(result.serviceMs) > 10,
      JSON.stringify(result),
    )
  }
})

test('test hashes are refused by a worker that was not told to accept them', async (t) => {
  const { space } = await workerFor(t, { env: { SPILLWAY_TEST_HASHES: 'false' } })
  const answer = await verified(space, { password: 'x', storedHash: '$spillway-token$' })
  assert.deepEqual(answer, { kind: 'refused', code: 'unsupported_hash' })
})

test('a job past its deadline is dropped unhashed, and the jobs behind it are not', async (t) => {
  const space = spaceFor(t)
  const hasty = await readyClient(space, { jobLifeMs: 1 })
  const patient = await readyClient(space)
  const late = await hasty.submit('verify', { password: 'x', storedHash: '$spillway-token$' })
  await until(() => hasty.now() > late.job.deadline)
  const inTime = await patient.submit('verify', { password: 'x', storedHash: '$spillway-token$' })
  const worker = await startedWorker(space, { slots: 1 })

  assert.deepEqual(await answerOf(inTime), { kind: 'match' })
  const result = await resultOf(space, late.job.id)
  assert.ok(typeof result === 'object' && result !== null && 'outcome' in result && 'serviceMs' in result)
  assert.equal(result.outcome, 'expired')
  assert.equal(result.serviceMs, 0)
  assert.equal(await space.redis.exists(verdictKey(space.prefix, late.job.id)), 0)
  assert.equal(await answerOf(late, 0), undefined)
  await jobsAreCounted(worker, 'verify expired 1', 'verify hashed 1')
})

test('the first to come is the first to be served', async (t) => {
  const { space, client } = await clientFor(t)
  const order: number[] = []
  const pending = []
  for (let i = 0; i < 8; i += 1) pending.push(await client.submit('hash', { password: 'x' }))
  const answers = pending.map((one, i) => answerOf(one).then(() => order.push(i)))
  await startedWorker(space, { slots: 1, env: { HASH_ENGINE: 'packages' } })
  await Promise.all(answers)
  assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6, 7])
})

test('no more jobs are in hand than two for each slot, where each hashes one at a time', async (t) => {
  const { space, client } = await clientFor(t)
  await startedWorker(space, { slots: 3, env: { HASH_ENGINE: 'packages' } })
  const jobs = Array.from({ length: 24 }, () =>
    client.submit('verify', { password: 'x', storedHash: '$spillway-wait$100$' }),
  )
  const pending = await Promise.all(jobs)
  let isOver = false
  const answers = Promise.all(pending.map((one) => answerOf(one))).finally(() => {
    isOver = true
  })
  let most = 0
  while (!isOver) most = Math.max(most, (await activeJobs(space)).length)
  assert.equal(most, 6)
  const matches = pending.map(() => ({ kind: 'match' }))
  assert.deepEqual(await answers, matches)
})

test('verify with an upgrade: the verdict says that a new hash follows, and it comes in a reply of its own', async (t) => {
  const { space } = await workerFor(t, { env: { ARGON2_TIME: '2' } })
  const client = await readyClient(space)
  const upgraded = async (upgrade: RehashMode, storedHash: string) => {
    const pending = await client.submit('verify', { password: 'U*U', storedHash, upgrade })
    const verdict = await answerOf(pending)
    if (typeof verdict !== 'object' || verdict.kind !== 'match') return verdict?.kind
    assert.equal(verdict.hash, undefined)
    if (verdict.hashFollows !== true) return 'kept'
    const follows = await answerOf(await client.resume(upgradeOf(pending.job)))
    assert.ok(typeof follows === 'object' && follows.kind === 'hashed')
    assert.match(follows.hash, /^\$argon2id\$v=19\$m=64,t=2,p=1\$/)
    assert.equal(await hasher.verify('U*U', follows.hash), true)
    return 'replaced'
  }
  const stronger = await (await Hasher.load(argon2idPolicy({ ...policy, time: 3 }), {})).hash('U*U')
  assert.equal(await upgraded('weaker', bcryptHash), 'replaced')
  assert.equal(await upgraded('weaker', stronger), 'kept')
  assert.equal(await upgraded('always', stronger), 'replaced')
  assert.equal(await upgraded('never', bcryptHash), 'kept')
  assert.equal(await upgraded('weaker', await hasher.hash('another')), 'mismatch')
})

test('REHASH of the worker is for requests that bring no policy of their own', async (t) => {
  const { space } = await workerFor(t, { env: { REHASH: 'never' } })
  assert.deepEqual(await verified(space, { password: 'U*U', storedHash: bcryptHash }), { kind: 'match' })
  const own = { algorithm: 'argon2id', memoryKib: 64, time: 2, parallelism: 1 } as const
  freshHash(await verified(space, { password: 'U*U', storedHash: bcryptHash, policy: own, rehash: true }))
})
