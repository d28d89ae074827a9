// Tickets whose clients are absent at their turn: nothing is hashed, and nobody loses a place.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { absentKey, lineKey, lockKey, queueKey, returnedKey } from '@spillway/queue/jobs/keys'
import { promoteOldestDeferred } from '@spillway/queue/jobs/lanes'
import { passOver } from '@spillway/queue/jobs/ticket'
import type { PasswordClient, PendingJob } from '@spillway/queue/queue-client'
import { presentKey } from '@spillway/queue/wire/reply'
import { test } from 'vitest'
import { passwordsOf } from '../application.ts'
import {
  answerOf,
  clientAndWorker,
  clientFor,
  jobsAreCounted,
  jobsCounted,
  readyClient,
  startedWorker,
} from '../parts.ts'
import { jobKey, type Space, spaceFor } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-token$' }
const match = { kind: 'match' }

/** The ticket of a client that went away: its time is over. */
async function leftBehind(space: Space, client: PasswordClient, lifeMs?: number) {
  const pending = await client.submit('verify', request, { lane: 'deferred', lifeMs, waitMs: 0 })
  await answerOf(pending, 0)
  await space.redis.del(presentKey(space.prefix, pending.job.id))
  return pending.job
}

const absent = ({ redis, prefix }: Space) => redis.zrange(absentKey(prefix), 0, '-1')
const deferred = ({ redis, prefix }: Space) => redis.zrange(queueKey(prefix, 'prioritized'), 0, '-1')

test.concurrent('an absent ticket is passed over unhashed and waits for no worker; when its client comes it is next', async (t) => {
  const { space, client } = await clientFor(t)
  const gone = await leftBehind(space, client)
  const there = await client.submit('verify', request, { lane: 'deferred' })
  const worker = await startedWorker(space)
  assert.deepEqual(await answerOf(there), match)
  await until(async () => (await absent(space)).includes(gone.id))
  assert.equal(await space.redis.exists(lockKey(space.prefix, gone.id)), 0)
  await until(() => {
    const { waiting, deferred, active, absent } = client.load()
    return absent === 1 && waiting + deferred + active === 0
  })
  assert.equal(client.line(gone).serving, 2)

  await worker.close()
  const others = [
    await client.submit('verify', request, { lane: 'deferred' }),
    await client.submit('verify', request, { lane: 'deferred' }),
  ]
  const back = await client.resume(gone)
  const inLine = [gone, ...others.map(({ job }) => job)].map(({ id }) => id)
  assert.deepEqual(await deferred(space), inLine)
  assert.deepEqual(await absent(space), [])
  assert.deepEqual(await back.expectation().then(({ ahead, number }) => ({ ahead, number })), { ahead: 0, number: 1 })
  await until(() => client.load().deferred === 3)
  assert.ok(client.line(gone).serving >= 2, 'the number that is served does not run backwards')
  await startedWorker(space)
  for (const pending of [back, ...others]) assert.deepEqual(await answerOf(pending), match)
})

test.concurrent('clients who come back together take turns with the line, and count until a worker has taken them', async (t) => {
  const { space, client } = await clientFor(t)
  const gone = []
  while (gone.length < 5) gone.push(await leftBehind(space, client))
  const worker = await startedWorker(space)
  await until(async () => (await absent(space)).length === gone.length)
  await worker.close()
  const line: PendingJob[] = []
  const join = async () => void line.push(await client.submit('verify', request, { lane: 'deferred' }))
  while (line.length < 2) await join()
  const back = []
  for (const job of gone) back.push(await client.resume(job))
  const inTurn = [gone[0], line[0]?.job, gone[1], line[1]?.job, gone[2]].map((job) => job?.id)
  assert.deepEqual((await deferred(space)).slice(0, 5), inTurn)
  // Who joins now has no more of them ahead than there are in line.
  await join()
  await join()
  const order = await deferred(space)
  assert.ok(order.indexOf(line[2]?.job.id ?? '') <= 6 && order.indexOf(line[3]?.job.id ?? '') <= 8)
  await until(() => {
    const { deferred, returned } = client.load()
    return deferred === 9 && returned === 5
  })
  assert.equal(client.line(gone[0] ?? assert.fail()).serving, 6, 'the line is where its first is')
  await startedWorker(space)
  for (const pending of [...back, ...line]) assert.deepEqual(await answerOf(pending), match)
  assert.equal(await space.redis.zcard(returnedKey(space.prefix)), 0)
})

test.concurrent('beyond their cap absent tickets are dropped: those that are behind first, then the oldest', async (t) => {
  const { space, client } = await clientFor(t)
  const oldest = await leftBehind(space, client)
  const behind = await client.submit('verify', request, { lane: 'behind', waitMs: 0 })
  await answerOf(behind, 0)
  const later = await leftBehind(space, client)
  const capped = (maxAbsent: number) => readyClient(space, { maxAbsent })
  await startedWorker(space)
  await until(async () => (await absent(space)).length === 3)
  const kept = [behind.job, oldest, later].map(({ id }) => id)
  assert.deepEqual(await absent(space), kept)
  await capped(2)
  await until(async () => (await absent(space)).length === 2)
  const stay = [oldest, later].map(({ id }) => id)
  assert.deepEqual(await absent(space), stay)
  assert.equal(await space.redis.exists(jobKey(space, behind.job.id)), 0)
  // An application's cap is half of its maxOutstanding.
  passwordsOf(space, { maxOutstanding: 2 })
  await until(async () => (await absent(space)).join() === later.id)
  assert.equal(await space.redis.hget(lineKey(space.prefix), 'abandoned'), '2')
  assert.deepEqual(await answerOf(await client.resume(later)), match)
})

test.concurrent('a client that comes back wakes a worker that has nothing else to do', async (t) => {
  const { space, client } = await clientFor(t)
  const gone = await leftBehind(space, client)
  await startedWorker(space)
  await until(async () => (await absent(space)).length === 1)
  assert.deepEqual(await answerOf(await client.resume(gone)), match)
})

test.concurrent('a ticket that stays absent is dropped at its deadline, and counted', async (t) => {
  const { space, client } = await clientFor(t)
  const [first, second] = [await leftBehind(space, client, 2_000), await leftBehind(space, client, 2_000)]
  await startedWorker(space)
  await until(async () => (await space.redis.hget(lineKey(space.prefix), 'abandoned')) === '2')
  assert.deepEqual(await absent(space), [])
  for (const { id } of [first, second]) assert.equal(await space.redis.exists(jobKey(space, id)), 0)
  assert.equal((await client.resume(first)).isLost, true)
})

test.concurrent('only the worker that has a job passes it over, and only while its client is absent', async (t) => {
  const { space, redis, prefix, client } = await clientFor(t)
  const job = await leftBehind(space, client)
  await redis.zrem(queueKey(prefix, 'prioritized'), job.id)
  await redis.lpush(queueKey(prefix, 'active'), job.id)
  await redis.set(lockKey(prefix, job.id), 'token')
  assert.equal(await passOver(redis, prefix, job, 'of another worker'), false)
  await redis.set(presentKey(prefix, job.id), 'a gateway')
  assert.equal(await passOver(redis, prefix, job, 'token'), false)
  await redis.del(presentKey(prefix, job.id))
  // A worker may take a job before its client has given it its number.
  await redis.hdel(jobKey(space, job.id), 'number')
  assert.equal(await passOver(redis, prefix, job, 'token'), false)
  await redis.hset(jobKey(space, job.id), 'number', 1)
  assert.equal(await passOver(redis, prefix, job, 'token'), true)
  assert.equal(await redis.llen(queueKey(prefix, 'active')), 0)
  assert.deepEqual(await absent(space), [job.id])
  assert.equal(await client.cancel(job), true)
  assert.deepEqual(await absent(space), [])
})

test.concurrent('a job that is behind is not hashed unseen where Redis does not say whether its client is there', async (t) => {
  const { space, redis, prefix, client, worker } = await clientAndWorker(t)
  // The script that passes over fails.
  await redis.set(absentKey(prefix), 'of another type')
  const behind = await client.submit('verify', request, { lane: 'behind', waitMs: 0 })
  const { id } = behind.job
  const attempts = async () => Number(await redis.hget(jobKey(space, id), 'ats'))
  await until(async () => (await attempts()) >= 1 && (await redis.exists(lockKey(prefix, id))) === 0)
  // The next publication removes the key; the job is taken again, as a dead worker's.
  await until(async () => (await absent(space)).includes(id))
  assert.deepEqual(await jobsCounted(worker), [])
  assert.deepEqual(await answerOf(await client.resume(behind.job)), match)
})

test.concurrent('a ticket whose client is away lets held ones go before, and is next when its client comes; alone it is hashed', async (t) => {
  const { space, redis, prefix, client } = await clientFor(t)
  const away = await client.submit('verify', request, { lane: 'deferred', waitMs: 0 })
  const there = await client.submit('verify', request, { lane: 'deferred', waitMs: 8_000 })
  await promoteOldestDeferred(redis, prefix)
  // More than a worker has in hand.
  const held: PendingJob[] = []
  while (held.length < 8) held.push(await client.submit('verify', request, { lane: 'held' }))
  const worker = await startedWorker(space, { slots: 1 })
  for (const pending of [there, ...held]) assert.deepEqual(await answerOf(pending), match)
  assert.deepEqual(await absent(space), [away.job.id])
  await jobsAreCounted(worker, 'verify hashed 9')
  // A client that only asks, and is never held, lets others go before it once.
  const more: PendingJob[] = []
  while (more.length < 8) more.push(await client.submit('verify', request, { lane: 'held' }))
  await client.resume(away.job, 0)
  await promoteOldestDeferred(redis, prefix)
  for (const pending of more) assert.deepEqual(await answerOf(pending), match)
  assert.deepEqual(await answerOf(await client.resume(away.job)), match)
  await jobsAreCounted(worker, 'verify hashed 18')
  const alone = await client.submit('verify', request, { lane: 'deferred', waitMs: 0 })
  assert.deepEqual(await answerOf(alone), match)
})

test.concurrent('a ticket that was redeemed keeps its turn while its client is away: who only asks lets nobody go before', async (t) => {
  const { space, client } = await clientFor(t)
  const asking = await client.submit('verify', request, { lane: 'deferred', waitMs: 0 })
  await answerOf(await client.resume(asking.job, 0), 0)
  await promoteOldestDeferred(space.redis, space.prefix)
  const held: PendingJob[] = []
  while (held.length < 8) held.push(await client.submit('verify', request, { lane: 'held' }))
  const worker = await startedWorker(space, { slots: 1 })
  for (const pending of held) assert.deepEqual(await answerOf(pending), match)
  await jobsAreCounted(worker, 'verify hashed 9')
  assert.deepEqual(await absent(space), [])
})

test.concurrent('a held job whose hold ran out is passed over where nobody comes for its ticket; who comes is next', async (t) => {
  const { space, redis, prefix, client } = await clientFor(t)
  const [gone, late] = [
    await client.submit('verify', request, { lane: 'held' }),
    await client.submit('verify', request, { lane: 'held' }),
  ]
  for (const pending of [gone, late]) {
    assert.equal(await answerOf(pending, 1), undefined)
    assert.equal((await pending.expectation()).number, undefined)
    assert.ok((await redis.pttl(presentKey(prefix, pending.job.id))) <= 10_000)
    await redis.del(presentKey(prefix, pending.job.id))
  }
  const there = await client.submit('verify', request, { lane: 'held' })
  const worker = await startedWorker(space)
  assert.deepEqual(await answerOf(there), match)
  await until(async () => (await absent(space)).length === 2)
  await jobsAreCounted(worker, 'verify hashed 1')
  const back = await client.resume(late.job)
  assert.deepEqual(await answerOf(back), match)
  await until(async () => (await absent(space)).join() === gone.job.id)
  await jobsAreCounted(worker, 'verify hashed 2')
})

test.concurrent('a client that leaves gives its place up after a grace, unless it is held elsewhere', async (t) => {
  const space = spaceFor(t)
  const { redis, prefix } = space
  const [client, other] = [await readyClient(space), await readyClient(space)]
  const { job } = await client.submit('verify', request, { lane: 'deferred', waitMs: 60_000 })
  const key = presentKey(prefix, job.id)
  await client.left(job)
  assert.ok((await redis.pttl(key)) <= 5_000)
  // A page reloads: held again before its old connection is known to be gone, at two gateways.
  const again = await client.resume(job, 60_000)
  await client.left(job)
  assert.ok((await redis.pttl(key)) > 60_000)
  await answerOf(again, 0)
  const elsewhere = await other.resume(job, 60_000)
  await client.left(job)
  assert.ok((await redis.pttl(key)) > 60_000)
  // Its time is nearly over: leaving gives it no more.
  await answerOf(elsewhere, 0)
  await redis.pexpire(key, 1_000)
  await other.left(job)
  assert.ok((await redis.pttl(key)) <= 1_000)
})

test.concurrent('numbers go on where Redis has lost its data, and no number is given twice by one gateway', async (t) => {
  const { redis, prefix, client } = await clientFor(t)
  const numberOf = async () =>
    (await (await client.submit('verify', request, { lane: 'deferred' })).expectation()).number
  assert.deepEqual([await numberOf(), await numberOf(), await numberOf()], [1, 2, 3])
  await redis.del(lineKey(prefix))
  assert.equal(await numberOf(), 4)
  await until(() => client.line({ id: '', name: 'verify', deadline: 0 }).serving === 1)
  await redis.del(lineKey(prefix), queueKey(prefix, 'prioritized'))
  await until(() => client.load().deferred === 0)
  assert.equal(client.line({ id: '', name: 'verify', deadline: 0 }).serving, 1)
  assert.equal(await numberOf(), 5)
  await until(() => client.line({ id: '', name: 'verify', deadline: 0 }).serving === 5)
})

test.concurrent('a job that is behind follows all deferred ones, and is hashed only once its client may come', async (t) => {
  const { space, redis, prefix, client } = await clientFor(t)
  const behind = await client.submit('verify', request, { lane: 'behind', waitMs: 0 })
  const others = [
    await client.submit('verify', request, { lane: 'deferred' }),
    await client.submit('verify', request, { lane: 'deferred' }),
  ]
  const inOrder = [...others, behind].map(({ job }) => job.id)
  assert.deepEqual(await deferred(space), inOrder)
  assert.equal((await (await client.resume(behind.job, 0, false)).expectation()).ahead, 2)
  // A worker may take it before it has its number.
  await redis.hdel(jobKey(space, behind.job.id), 'number')
  await startedWorker(space)
  for (const pending of others) assert.deepEqual(await answerOf(pending), match)
  await until(async () => (await absent(space)).includes(behind.job.id))
  await answerOf(await client.resume(behind.job, 0, false), 0)
  assert.deepEqual(await absent(space), [behind.job.id])
  assert.equal(await redis.exists(presentKey(prefix, behind.job.id)), 0)
  assert.deepEqual(await answerOf(await client.resume(behind.job)), match)
})
