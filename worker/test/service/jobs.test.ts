// Jobs in a worker: their results, presence, order, and how many are in hand.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { resultKey, upgradeOf } from '@spillway/queue/wire/reply'
import { test } from 'vitest'
import { clientAndWorker, clientFor, jobsAreCounted, resultOf, startedWorker, submit } from '../parts.ts'
import { activeJobs, completionOf, jobKey } from '../space.ts'

test('hash and verify: a hash is of the policy, and matches its password alone', async (t) => {
  const { client } = await clientAndWorker(t)
  const hashed = await resultOf(await submit(client, 'hash', { password: 'correct horse' }))
  assert.ok(hashed?.kind === 'hashed')
  assert.match(hashed.hash, /^\$argon2id\$v=19\$m=64,t=1,p=1\$/)
  for (const [password, kind] of [
    ['correct horse', 'match'],
    ['correct hors', 'mismatch'],
  ])
    assert.deepEqual(
      await resultOf(await submit(client, 'verify', { password: `${password}`, storedHash: hashed.hash })),
      { kind },
    )
})

test('a job whose client is away is skipped unhashed, and one whose client has come back is not', async (t) => {
  const { space, client } = await clientFor(t)
  const request = { password: 'x', storedHash: '$spillway-token$' }
  const [away, back] = [
    await submit(client, 'verify', request, { presentMs: -60_000 }),
    await submit(client, 'verify', request, { presentMs: -60_000 }),
  ]
  await client.present(back.job, 60_000)
  const there = await submit(client, 'verify', request)
  const worker = await startedWorker(space, { slots: 1 })

  for (const pending of [back, there]) assert.deepEqual(await resultOf(pending), { kind: 'match' })
  const completion = await until(() => completionOf(space, away.job.id))
  assert.ok(typeof completion === 'object' && 'outcome' in completion && 'serviceMs' in completion)
  assert.deepEqual([completion.outcome, completion.serviceMs], ['skipped', 0])
  assert.equal(await space.redis.exists(resultKey(space.prefix, away.job.id)), 0)
  assert.equal((await client.resume(away.job)).state, 'ended')
  await jobsAreCounted(worker, 'verify hashed 2', 'verify skipped 1')
})

test('no more jobs are in hand than two for each slot, where each hashes one at a time', async (t) => {
  const { space, client } = await clientFor(t)
  await startedWorker(space, { slots: 3, env: { HASH_ENGINE: 'packages' } })
  const jobs = Array.from({ length: 48 }, () =>
    submit(client, 'verify', { password: 'x', storedHash: '$spillway-wait$100$' }),
  )
  const pending = await Promise.all(jobs)
  let isOver = false
  const answers = Promise.all(pending.map((one) => resultOf(one))).finally(() => {
    isOver = true
  })
  let most = 0
  while (!isOver) most = Math.max(most, (await activeJobs(space)).length)
  assert.equal(most, 6)
  const matches = pending.map(() => ({ kind: 'match' }))
  assert.deepEqual(await answers, matches)
})

test('a new hash that follows a match comes in a reply of its own', async (t) => {
  const { client } = await clientAndWorker(t)
  const storedHash = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
  const pending = await submit(client, 'verify', { password: 'U*U', storedHash, upgrade: 'weaker' })
  assert.deepEqual(await resultOf(pending), { kind: 'match', hashFollows: true })
  const follows = await resultOf(await client.resume(upgradeOf(pending.job)))
  assert.ok(follows?.kind === 'hashed')
  assert.match(follows.hash, /^\$argon2id\$/)
})

test('a finished job does not tell a right password from a wrong one', async (t) => {
  const { space, client } = await clientAndWorker(t)
  const storedHash = '$spillway-token$'
  const kept = []
  for (const password of ['right', 'wrong']) {
    const { job } = await submit(client, 'verify', { password, storedHash })
    await until(() => completionOf(space, job.id))
    const { data, returnvalue, ...others } = await space.redis.hgetall(jobKey(space, job.id))
    const result = await space.redis.get(resultKey(space.prefix, job.id))
    kept.push({
      fields: Object.keys(others).sort(),
      result: Object.keys(JSON.parse(returnvalue ?? '')),
      outcome: JSON.parse(returnvalue ?? '').outcome,
      lengths: [data?.length, result?.length],
    })
  }
  assert.deepEqual(kept[0], kept[1])
})
