// The lane of known devices in a real Redis: before the others, for half of the capacity.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { lastKnownKey, queueKey } from '@spillway/queue/jobs/keys'
import type { Lane } from '@spillway/queue/queue-client'
import { type TestContext, test } from 'vitest'
import { answerOf, clientFor, readyClient, startedWorker } from '../parts.ts'
import { waitingJobs } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-wait$20$' }

/** A queue without workers; jobs are called by lane and order of adding: held 1, known 1 */
async function scene(t: TestContext) {
  const { space, client } = await clientFor(t)
  const names = new Map<string, string>()
  const count = { known: 0, held: 0, deferred: 0, behind: 0 }

  /** Resolves when the job is in its place. */
  async function add(lane: Lane) {
    const before = await space.redis.get(lastKnownKey(space.prefix))
    const pending = await client.submit('verify', request, { lane })
    names.set(pending.job.id, `${lane} ${++count[lane]}`)
    if (lane === 'known') await until(async () => (await space.redis.get(lastKnownKey(space.prefix))) !== before)
    return pending
  }
  return {
    space,
    client,
    add,
    async addAll(...lanes: Lane[]) {
      const all = []
      for (const lane of lanes) all.push(await add(lane))
      return all
    },
    /** The next one first. */
    order: async () => (await waitingJobs(space)).map((id) => names.get(id)).reverse(),
  }
}

test('a job of a known device overtakes those that wait but for one, and those of known devices stay in turn', async (t) => {
  const { addAll, order } = await scene(t)
  await addAll('held', 'held', 'held', 'held', 'known', 'known')
  assert.deepEqual(await order(), ['held 1', 'known 1', 'held 2', 'known 2', 'held 3', 'held 4'])
  await addAll('held', 'known', 'known', 'known', 'known')
  assert.deepEqual(await order(), [
    ...['held 1', 'known 1', 'held 2', 'known 2', 'held 3', 'known 3'],
    ...['held 4', 'known 4', 'held 5', 'known 5', 'known 6'],
  ])
})

test('after one was taken the next lets another job go first: known devices cannot take all, however they come', async (t) => {
  const { space, add, addAll, order } = await scene(t)
  await addAll('held', 'held', 'held', 'known')
  // As a worker takes them.
  for (const next of ['held 1', 'known 1']) {
    assert.equal((await order())[0], next)
    await space.redis.rpop(queueKey(space.prefix, 'wait'))
  }
  await add('known')
  assert.deepEqual(await order(), ['held 2', 'known 2', 'held 3'])
})

test('one that is cancelled leaves its place to the next, which overtakes none of those before', async (t) => {
  const { space, client, add, addAll, order } = await scene(t)
  await addAll('held', 'held', 'held', 'known')
  for (let n = 2; n < 5; n += 1) {
    const leaving = await add('known')
    await answerOf(leaving, 0)
    assert.equal(await client.cancel(leaving.job), true)
  }
  assert.ok((await space.redis.pttl(lastKnownKey(space.prefix))) > 0, 'a key that expires')
  await add('known')
  assert.deepEqual(await order(), ['held 1', 'known 1', 'held 2', 'known 5', 'held 3'])
})

test('every gateway sees how long the lane of known devices is', async (t) => {
  const { space, add, addAll } = await scene(t)
  const other = await readyClient(space)
  await addAll(...Array.from({ length: 30 }, () => 'held' as const))
  await until(() => other.load().waiting === 30)
  assert.equal(other.load().aheadOfKnown, 1)
  for (const ahead of [3, 5]) {
    await add('known')
    await until(() => other.load().aheadOfKnown === ahead, { what: `${ahead} ahead` })
  }
})

test('while known devices ask for more than workers can do, every second job done is of others, and all are answered', async (t) => {
  const { space, addAll } = await scene(t)
  const others = await addAll(...Array.from({ length: 20 }, () => 'held' as const))
  const known = await addAll(...Array.from({ length: 20 }, () => 'known' as const))
  await startedWorker(space, { slots: 1 })
  const done: string[] = []
  const noting = (pendings: typeof known, lane: string) =>
    pendings.map(async (pending) => {
      assert.deepEqual(await answerOf(pending), { kind: 'match' })
      done.push(lane)
    })
  await Promise.all([...noting(others, 'held'), ...noting(known, 'known')])
  const early = done.slice(0, 20).filter((lane) => lane === 'known').length
  assert.ok(early >= 8 && early <= 12, `${early} of the first twenty`)
})

test('a job of a known device promotes deferred ones, as any that overtakes', async (t) => {
  const { add, addAll, order } = await scene(t)
  await addAll('deferred', 'deferred', 'deferred')
  await add('held')
  await until(async () => (await order()).length === 3)
  await add('known')
  await until(async () => (await order()).length === 5)
  assert.deepEqual(await order(), ['held 1', 'known 1', 'deferred 1', 'deferred 2', 'deferred 3'])
})

test('what others write in the place of the last one stops no job and no reading', async (t) => {
  const { space, client, addAll, order } = await scene(t)
  await addAll('held', 'held')
  await space.redis.lpush(lastKnownKey(space.prefix), 'anything')
  const { job } = await client.submit('verify', request, { lane: 'known' })
  await until(async () => (await waitingJobs(space))[1] === job.id, { what: 'the known one in its place' })
  assert.equal((await order()).length, 3)
  await space.redis.del(lastKnownKey(space.prefix))
  await space.redis.lpush(lastKnownKey(space.prefix), 'anything')
  const other = await readyClient(space)
  await until(() => other.load().known && other.load().waiting === 3)
  assert.equal(await client.cancel(job), true)
})
