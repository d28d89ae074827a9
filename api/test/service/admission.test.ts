// Requests that cannot be answered in time are refused at once, or get their ticket at once.

import assert from 'node:assert/strict'
import { readMetric } from '@spillway/infra/harness/api-client'
import { withDoubles } from '@spillway/infra/harness/spillway'
import { until } from '@spillway/infra/processes/until'

import { test } from 'vitest'
import { gatedAccount } from '../account.ts'
import {
  asIs,
  assertProblem,
  atOnce,
  expect,
  fetchPatiently,
  keepTicket,
  newCredentials,
  respondAsync,
} from '../client.ts'
import { watchQueue } from '../queue.ts'
import { lockOptions, openSystem, readiness } from '../system.ts'

const system = await openSystem()
const queue = watchQueue(system)
/** A request that is held is held beyond the life of a test. */
const patient = { LOGIN_WAIT_MS: '250000', TICKET_TTL_MS: '300000' }
const { api } = await system.gateway(patient)

test('without any worker a request gets its ticket at once, and its answer when one has come', async () => {
  const credentials = newCredentials()
  const first = await api.register(credentials, keepTicket)
  const { ticket, retryAfter, position, eta } = expect(202, first)
  assert.deepEqual({ retryAfter, eta }, { retryAfter: 5, eta: undefined })
  // A job that was added during a reading of the queue may count twice until the next one.
  assert.ok(position === 0 || position === 1, `position ${position}`)
  const { position: second } = expect(202, await api.login(credentials, keepTicket))
  assert.ok(second === 1 || second === 2, `position ${second}`)
  await queue.settled(2, 0)

  // A ticket is valid after its Retry-After: for a second at least, 2 s only within the millisecond.
  const hasty = await system.gateway({ TICKET_TTL_MS: '3000', LOGIN_WAIT_MS: '0' })
  await until(async () => expect(202, await hasty.api.register(newCredentials(), asIs)).retryAfter === 1)

  // The queue is full: refused at once, before the database or the queue is asked.
  const full = await system.gateway({ MAX_OUTSTANDING: '2', LIMIT_PER_ADDRESS: '1000', TRUST_PROXY: '127.0.0.1' })
  await until(async () => (await full.api.register(newCredentials(), asIs)).status === 503)
  const added = (await queue.added()).length
  await system.database.$transaction(async (locked) => {
    await locked.$executeRaw`LOCK TABLE users IN ACCESS EXCLUSIVE MODE`
    for (const start of ['register', 'login'] as const) {
      for (const device of [{}, { 'spillway-device': 'x' }]) {
        const headers = { 'x-forwarded-for': '198.51.100.77', ...device }
        const answer = await full.api[start](newCredentials(), { headers, ...asIs })
        assertProblem(answer, 503, 'busy')
        assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d?$/)
      }
    }
  }, lockOptions)
  assert.equal((await queue.added()).length, added)
  assert.deepEqual(await system.redis.keys('*198.51.100.77*'), [], 'nothing was counted')

  await system.worker()
  await until(async () => (await readiness(api.url)).workers === 1)
  expect(201, await api.redeem(ticket))
  await queue.settled(0, 0)
  expect(200, await api.login(credentials))
})

test('a job that will take longer than the wait gets its ticket at once, and one that will outlast a ticket is refused', async (t) => {
  // A second or so for each hash, as the worker finds out when it starts.
  const slow = await openSystem(t)
  await slow.worker({ ARGON2_TIME: '64', ARGON2_MEMORY_KIB: '16384' })
  const gateway = await slow.gateway({ LOGIN_WAIT_MS: '100', TICKET_TTL_MS: '60000' })
  expect(202, await gateway.api.register(newCredentials(), keepTicket))

  const strict = await slow.gateway({ LOGIN_WAIT_MS: '0', TICKET_TTL_MS: '3000' })
  const refused = await until(async () => {
    const [answer] = await Promise.all([
      strict.api.register(newCredentials(), asIs),
      gateway.api.register(newCredentials(), asIs),
    ])
    return answer.status === 503 ? answer : undefined
  })
  assertProblem(refused, 503, 'busy')
  const retryAfterS = Number(refused.headers.get('retry-after'))
  assert.ok(retryAfterS >= 1 && retryAfterS <= 60)
})

test('as many get a ticket as can be answered within its life, also where nobody is held', async (t) => {
  const own = await openSystem(t)
  await own.worker({}, withDoubles)
  const gateway = await own.gateway({ LOGIN_WAIT_MS: '0' })
  const { account } = await gatedAccount(t, own.database)
  for (let n = 0; n < 4; n++) expect(202, await gateway.api.login(account, asIs))
})

test('a login is answered before those that wait with tickets, which operators see, and which are answered as well', async (t) => {
  const spike = await openSystem(t)
  const line = watchQueue(spike)
  const worker = await spike.worker({}, withDoubles)
  const gateway = await spike.gateway()
  const turn = (change: string) =>
    fetchPatiently(`${gateway.opsUrl}/queues/api/queues/passwords/${change}`, { method: 'PUT' })
  const { account, open } = await gatedAccount(t, spike.database)
  await turn('pause')
  await until(async () => (await gateway.api.call('GET', '/v1/line')).body.paused)
  // In a paused queue, all of them are ticketed. No job of theirs ends before the gate is opened.
  const answers = await atOnce(8, () => gateway.api.login(account, respondAsync))
  const tickets = answers.map((answer) => expect(202, answer).ticket)
  await turn('resume')
  await until(async () => (await readMetric(worker.opsUrl, 'spillway_worker_slots_busy')) === 1)
  await until(async () => {
    const [predictedS, perSecond] = await Promise.all([
      readMetric(gateway.opsUrl, 'spillway_predicted_wait_seconds'),
      readMetric(gateway.opsUrl, 'spillway_capacity_jobs_per_second'),
    ])
    return predictedS * perSecond > 6
  })
  const earlier = await line.added()
  const held = gateway.api.login(newCredentials())
  const job = await until(async () => (await line.added()).find((id) => !earlier.includes(id)))
  open()
  assertProblem(await held, 401, 'invalid_credentials')
  assert.equal(await line.takenFirstAfter(job), job)
  for (const ticket of tickets) expect(200, await gateway.api.redeem(ticket))
})
