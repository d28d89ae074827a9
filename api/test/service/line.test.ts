// The line as its clients see it: numbers, how far it has come, and what becomes of who goes away.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import type { Member } from '@spillway/infra/start/member'
import { absentKey, queueKey } from '@spillway/queue/jobs/keys'
import { presentKey } from '@spillway/queue/wire/reply'
import { Queue } from 'bullmq'
import { test } from 'vitest'
import { assertProblem, expect, newCredentials, respondAsync } from '../client.ts'
import { watchQueue } from '../queue.ts'
import { openSystem, whileFrozen } from '../system.ts'

const system = await openSystem()
const { redis, namespace } = system
const prefix = namespace.queuePrefix
const queue = watchQueue(system)
const { api } = await system.gateway()
let worker: Member | undefined
const idOf = (ticket: string) => ticket.split('.')[0] ?? ''
const lineOf = async () => expect(200, await api.call('GET', '/v1/line'))
/** Tells a gateway that the time of a client is over that went away. */
const forget = (ticket: string) => redis.del(presentKey(prefix, idOf(ticket)))

test('tickets are numbered, the line is told to everybody, and whoever is absent is passed over and next when back', async () => {
  // Without a worker nothing is held.
  const ticketOf = async () => expect(202, await api.login(newCredentials(), respondAsync))
  const tickets = [await ticketOf(), await ticketOf(), await ticketOf(), await ticketOf()] as const
  const numbers = tickets.map(({ number }) => number)
  assert.deepEqual(numbers, [1, 2, 3, 4])
  const [{ line }] = tickets
  assert.match(line, /^[\w-]{8}$/)
  const { askedMs, ...before } = await until(async () => {
    const askedMs = Date.now()
    const told = await lineOf()
    return told.serving[line] === 1 ? { ...told, askedMs } : undefined
  })
  assert.deepEqual(Object.keys(before), ['serving', 'rate', 'until'])
  assert.deepEqual([before.serving, before.rate], [{ [line]: 1 }, { [line]: 0 }])
  assert.ok(Date.parse(before.until) > askedMs - 2_000)

  // Told anew, it keeps its number.
  assert.equal(expect(202, await api.redeem(tickets[1].ticket, respondAsync)).number, 2)

  for (const { ticket } of [tickets[0], tickets[2]]) await forget(ticket)
  // A busy machine may take longer to start a worker than a client may be away.
  for (const { ticket } of [tickets[1], tickets[3]]) await redis.pexpire(presentKey(prefix, idOf(ticket)), 600_000)
  worker = await system.worker()
  await until(async () => (await redis.zcard(absentKey(prefix))) === 2)
  await queue.settled(0, 0)
  await until(async () => (await lineOf()).serving[line] === 4)
  assert.match(await (await fetch(`${worker.opsUrl}/metrics`)).text(), /absent_tickets_total\{event="passed_over"\} 2/)
  // An address without an account: a decoy was verified for it.
  for (const { ticket } of tickets) assertProblem(await api.redeem(ticket), 401, 'invalid_credentials')
})

test('how far the line has come may be kept by anything between, and is not sent twice', async () => {
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

test('a redemption whose connection ends gives the place up after a grace, and one that is sent again keeps it', async () => {
  assert.ok(worker)
  const account = await api.newAccount()
  await whileFrozen(worker, async () => {
    const { ticket } = expect(202, await api.login(account, respondAsync))
    const key = presentKey(prefix, idOf(ticket))
    await redis.del(key)
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
    await until(async () => (await redis.pttl(key)) <= 5_000)
    expect(202, await api.redeem(ticket, respondAsync))
    assert.ok((await redis.pttl(key)) > 5_000)
  })
})

test('a ticket whose job Redis has lost says so at once', async () => {
  assert.ok(worker)
  // It would hash the job before Redis loses it.
  const { ticket } = await whileFrozen(worker, async () => {
    const asked = expect(202, await api.login(newCredentials(), respondAsync))
    const id = idOf(asked.ticket)
    await redis.del(`${prefix}:verdict:${id}`, `${prefix}:passwords:${id}`)
    await redis.lrem(queueKey(prefix, 'wait'), 0, id)
    await redis.zrem(queueKey(prefix, 'prioritized'), id)
    return asked
  })
  assertProblem(await api.redeem(ticket), 410, 'ticket_lost')
})

test('a paused queue is told to everybody who waits, and no time is promised', async () => {
  worker ??= await system.worker()
  const credentials = await api.newAccount()
  const bull = new Queue('passwords', { connection: redis, prefix })
  await bull.pause()
  const paused = await until(async () => {
    const told = await lineOf()
    return told.paused === undefined ? undefined : told
  })
  // Nobody is held in vain: the ticket comes at once, whatever wait the client would prefer.
  const ticket = expect(202, await api.call('POST', '/v1/login', { body: credentials }))
  assert.deepEqual([ticket.paused, ticket.eta], [true, undefined])
  assert.deepEqual([paused.paused, paused.rate], [[ticket.line], { [ticket.line]: 0 }])
  const again = expect(202, await api.redeem(ticket.ticket, respondAsync))
  assert.deepEqual([again.paused, again.eta], [true, undefined])

  await bull.resume()
  await until(async () => (await lineOf()).paused === undefined)
  const answer = await until(async () => {
    const redeemed = await api.redeem(again.ticket)
    return redeemed.status === 202 ? undefined : redeemed
  })
  expect(200, answer)
  await bull.close()
})
