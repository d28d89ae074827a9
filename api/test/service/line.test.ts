// The line as its clients see it: numbers, how far it has come, and what becomes of who goes away.
import assert from 'node:assert/strict'
import { deleteKeys } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import { jobKey, queueKey } from '@spillway/queue/keys'
import { presentKey } from '@spillway/queue/wire/reply'
import { Queue } from 'bullmq'
import { test } from 'vitest'
import {
  type Answer,
  assertProblem,
  atOnce,
  type Credentials,
  expect,
  keepTicket,
  newCredentials,
  respondAsync,
} from '../client.ts'
import { watchQueue } from '../queue.ts'
import { openSystem, whileFrozen } from '../system.ts'

const system = await openSystem()
const { redis, namespace } = system
const prefix = namespace.queuePrefix
const queue = watchQueue(system)
const { api } = await system.gateway()
const idOf = (ticket: string) => ticket.split('.')[0] ?? ''
const lineOf = async () => expect(200, await api.call('GET', '/v1/line'))
/** The client of a job goes away. */
async function goesAway(ticket: string): Promise<void> {
  const key = jobKey(prefix, idOf(ticket))
  const data = JSON.parse((await redis.hget(key, 'data')) ?? '')
  await redis.hset(key, 'data', JSON.stringify({ ...data, presentUntil: 0 }))
  await redis.del(presentKey(prefix, idOf(ticket)))
}
/** Follows a ticket to its answer, as a client that uses each new ticket. */
async function followed(given: Answer): Promise<Answer> {
  let answer = given
  await until(async () => {
    if (answer.status === 202) answer = await api.redeem(answer.body.ticket, keepTicket)
    return answer.status !== 202
  })
  return answer
}

test('tickets are numbered, everybody can read the line, and a request is started again if its client was away when its turn came', async () => {
  // Without a worker nothing is held.
  const asked: Answer[] = []
  for (let n = 0; n < 4; n++) asked.push(await api.login(newCredentials(), respondAsync))
  const [first, second, third] = asked.map((answer) => expect(202, answer))
  assert.deepEqual(
    asked.map(({ body }) => body.number),
    [1, 2, 3, 4],
  )
  const { askedMs, ...before } = await until(async () => {
    const askedMs = Date.now()
    const told = await lineOf()
    return told.serving === 1 ? { ...told, askedMs } : undefined
  })
  assert.deepEqual(Object.keys(before), ['serving', 'rate', 'until'])
  assert.deepEqual([before.serving, before.rate], [1, 0])
  assert.ok(Date.parse(before.until) > askedMs - 2_000)
  // A redemption of a waiting job keeps its number.
  assert.equal(expect(202, await api.redeem(second?.ticket ?? '', respondAsync)).number, 2)

  for (const each of [first, third]) await goesAway(each?.ticket ?? '')
  const worker = await system.worker()
  await queue.settled(0, 0)
  await until(async () => (await lineOf()).serving === 4)
  const metrics = await (await fetch(`${worker.opsUrl}/metrics`)).text()
  assert.match(metrics, /jobs_total\{job="verify",outcome="skipped"\} [2-4]/)
  // An address without an account: a dummy was verified for it.
  for (const answer of asked) assertProblem(await followed(answer), 401, 'invalid_credentials')
  await worker.stop()
})

test('a cache may keep how far the line has come, and it is not sent twice', async () => {
  // The line may go on between the two.
  await until(async () => {
    const first = await api.call('GET', '/v1/line')
    expect(200, first)
    assert.equal(first.headers.get('cache-control'), 'public, max-age=2')
    const etag = first.headers.get('etag') ?? ''
    assert.match(etag, /^W\/"[\d.-]+"$/)
    const again = await api.call('GET', '/v1/line', { headers: { 'if-none-match': etag } })
    assert.equal(again.headers.get('cache-control'), 'public, max-age=2')
    return again.status === 304 && again.headers.get('etag') === etag
  })
})

test('a client is present while it redeems, and for a grace after its connection has ended', async () => {
  const worker = await system.worker()
  const account = await api.newAccount()
  await whileFrozen(worker, async () => {
    const { ticket } = expect(202, await api.login(account, respondAsync))
    const key = presentKey(prefix, idOf(ticket))
    const leaving = new AbortController()
    const held = fetch(`${api.url}/v1/tickets/redeem`, {
      method: 'POST',
      body: JSON.stringify({ ticket }),
      headers: { 'content-type': 'application/json' },
      signal: leaving.signal,
    })
    await until(async () => (await redis.pttl(key)) > 10_000)
    leaving.abort()
    await assert.rejects(held)
    await until(async () => (await redis.pttl(key)) <= 2_000)
    expect(202, await api.redeem(ticket, respondAsync))
    assert.ok((await redis.pttl(key)) > 2_500)
  })
  await worker.stop()
})

test('when Redis loses everything, all who wait with tickets or are held get in, and numbers go on', async () => {
  const worker = await system.worker()
  const accounts = await atOnce(20, () => api.newAccount())
  const { held, tickets, last } = await whileFrozen(worker, async () => {
    const held = accounts.slice(0, 5).map((account) => api.login(account, { headers: { prefer: 'wait=2' } }))
    const tickets = await Promise.all(accounts.slice(5).map((account) => api.login(account, respondAsync)))
    const { last } = await until(async () => {
      const { serving } = await lineOf()
      return { last: Number(serving) }
    })
    // Tests of other files have keys on this server, too.
    await deleteKeys(namespace.redisUrl, prefix)
    return { held: await Promise.all(held), tickets, last }
  })
  for (const answer of [...held, ...tickets]) expect(200, await followed(answer))
  assert.ok(Number((await lineOf()).serving) >= last)
  await worker.stop()
})

/** Changes that an account goes through between a ticket and the second start of its request. */
const changes: [what: string, change: (account: Credentials) => Promise<unknown>][] = [
  ['disabled', ({ email }) => system.database.user.update({ where: { email }, data: { disabledAt: new Date() } })],
  ['deleted', ({ email }) => system.database.user.delete({ where: { email } })],
]
test.each(changes)('a request that is started again after its account was %s is refused', async (_, change) => {
  const worker = await system.worker()
  const account = await api.newAccount()
  const ticket = await whileFrozen(worker, async () => {
    const given = await api.login(account, respondAsync)
    await redis.del(queueKey(prefix, 'wait'), queueKey(prefix, 'prioritized'), jobKey(prefix, idOf(given.body.ticket)))
    await change(account)
    return given
  })
  assertProblem(await followed(ticket), 401, 'invalid_credentials')
  await worker.stop()
})

test('while the queue is paused, everybody who waits is told, and no time is promised', async () => {
  await system.worker()
  const credentials = await api.newAccount()
  const bull = new Queue('passwords', { connection: redis, prefix })
  await bull.pause()
  const paused = await until(async () => {
    const told = await lineOf()
    return told.paused === undefined ? undefined : told
  })
  const ticket = expect(202, await api.login(credentials, keepTicket))
  assert.deepEqual([ticket.paused, ticket.eta], [true, undefined])
  assert.deepEqual([paused.paused, paused.rate], [true, 0])
  const again = await api.redeem(ticket.ticket, respondAsync)
  assert.deepEqual([again.body.paused, again.body.eta], [true, undefined])

  await bull.resume()
  await until(async () => (await lineOf()).paused === undefined)
  expect(200, await followed(again))
  await bull.close()
})
