// Clients that go away before their answer: nothing is hashed for nobody.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { readMetric } from '@spillway/infra/harness/api-client'
import { withDoubles } from '@spillway/infra/harness/spillway'
import type { LogLine } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'

import { test } from 'vitest'
import { gatedAccount, slowAccount } from '../account.ts'
import { expect, respondAsync } from '../client.ts'
import { watchQueue } from '../queue.ts'
import { lockOptions, locksAwaited, ofFile, openSystem } from '../system.ts'

const system = await openSystem()
// Its own: jobs and slow hashes of other files would decide in which list a job waits.
const worker = await system.worker({}, withDoubles)
const gateway = await system.gatewayProcess()
const { api } = gateway
const queue = watchQueue(system)
/** Keeps the only slot for as long as jobs of the first tests have to wait. */
const keeper = await gatedAccount(ofFile, system.database)
const ahead = api.login(keeper.account)
await queue.settled(0, 1)
const takenBack: string[] = []

test('the job of a client that goes away while it waits is cancelled', async () => {
  const client = new AbortController()
  const left = api.login(await slowAccount(system.database, 1), { signal: client.signal })
  await queue.settled(1, 1)
  const jobId = (await queue.added()).at(-1) ?? ''
  client.abort()
  await assert.rejects(left, { name: 'AbortError' })
  await queue.settled(0, 1)
  assert.equal(await queue.holds(jobId), false)
  await until(async () => (await readMetric(gateway.opsUrl, 'spillway_jobs_cancelled_total')) === 1)
  await gateway.waitForLog((line) => line.msg === 'client gone' && line.jobId === jobId)
  takenBack.push(jobId)
})

test('the job of a client that went away before there was one does not stay', async () => {
  const credentials = await slowAccount(system.database, 1)
  const client = new AbortController()
  const added = (await queue.added()).length
  const before = gone().length
  await system.database.$transaction(async (locked) => {
    await locked.$executeRaw`LOCK TABLE users IN ACCESS EXCLUSIVE MODE`
    const left = api.login(credentials, { signal: client.signal })
    await until(() => locksAwaited(system.database))
    client.abort()
    await assert.rejects(left, { name: 'AbortError' })
    await until(() => gone().length > before)
  }, lockOptions)
  const jobId = await until(async () => (await queue.added())[added])
  await until(async () => !(await queue.holds(jobId)))
  takenBack.push(jobId)
})

test('a client that has its ticket may go away; of the jobs that were cancelled nothing was hashed', async () => {
  const answer = await api.login(await slowAccount(system.database, 1), {
    headers: { ...respondAsync.headers, connection: 'close' },
  })
  const { ticket } = expect(202, answer)
  const client = new AbortController()
  const left = api.redeem(ticket, { signal: client.signal })
  client.abort()
  await assert.rejects(left, { name: 'AbortError' })
  keeper.open()
  await ahead
  await until(async () => (await api.redeem(ticket)).status === 200)
  // Lines keep their order: with this one there would be those of the jobs before it.
  await worker.waitForLog(({ jobId }) => jobId === ticket.split('.')[0])
  for (const jobId of takenBack) assert.ok(!worker.logs.some((line) => line.jobId === jobId))
})

test('a job that has begun when its client goes away comes to its end, and that is no error', async (t) => {
  const before = gone().length
  const client = new AbortController()
  const { account, open } = await gatedAccount(t, system.database)
  const left = api.login(account, { signal: client.signal })
  await queue.settled(0, 1)
  client.abort()
  await assert.rejects(left, { name: 'AbortError' })
  await until(() => gone().length > before)
  open()
  await queue.settled(0, 0)
  assert.deepEqual(troublesOfLast(), [])
})

test('a client that goes away in the middle of its body is no error either', async () => {
  const before = gone().length
  const { hostname, port } = new URL(api.url)
  const socket = connect(Number(port), hostname)
  const head = 'POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n'
  await new Promise((resolve) => socket.write(`${head}{"email":`, resolve))
  socket.destroy()
  await until(() => gone().length > before)
  assert.deepEqual(troublesOfLast(), [])
})

/** Warnings and errors of the request whose client has gone last. Other lines are of a slow machine. */
function troublesOfLast(): LogLine[] {
  const requestId = gone().at(-1)?.requestId
  assert.ok(requestId !== undefined)
  return gateway.logs.filter((line) => line.requestId === requestId && line.level !== 'info')
}

/** The lines of clients that have gone so far. */
function gone(): LogLine[] {
  return gateway.logs.filter(({ msg }) => msg === 'client gone')
}
