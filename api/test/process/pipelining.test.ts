// Requests that share a connection: each is answered in its turn, and all end with it.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { readMetric } from '@spillway/infra/harness/api-client'
import { withDoubles } from '@spillway/infra/harness/spillway'
import { until } from '@spillway/infra/processes/until'
import { fastify } from 'fastify'
import { afterAll, test } from 'vitest'
import { clientGonePlugin } from '../../src/http/requests.ts'
import { gatedAccount } from '../account.ts'
import type { Credentials } from '../client.ts'
import { openCollector } from '../otlp-collector.ts'
import { watchQueue } from '../queue.ts'
import { openSystem, whileFrozen } from '../system.ts'

const LOGINS = 15

const collector = await openCollector()
afterAll(() => collector.close())
const system = await openSystem()
const worker = await system.worker({ WORKER_CONCURRENCY: '2' }, withDoubles)
const tracing = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100' }
const gateway = await system.gatewayProcess(tracing)
const queue = watchQueue(system)

function loginRequest(credentials: Credentials, header = ''): string {
  const body = JSON.stringify(credentials)
  const headers = `Host: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${header}`
  return `POST /v1/login HTTP/1.1\r\n${headers}\r\n${body}`
}

/** Sends these requests in one write. */
function pipeline(requests: string[], url = gateway.url): Socket {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(requests.join(''))
  return socket
}

function sessionsOf({ email }: Credentials): Promise<number> {
  return system.database.session.count({ where: { user: { email } } })
}

/** Jobs of which the log says that their clients went away. */
function gone(): unknown[] {
  return gateway.logs.filter(({ msg }) => msg === 'client gone').map(({ jobId }) => jobId)
}

const countedAsGone = () => readMetric(gateway.opsUrl, 'spillway_http_requests_total', 'outcome="client_gone"')
const resultsReceived = () => readMetric(gateway.opsUrl, 'spillway_results_total', 'source=')

test('bytes that are no HTTP, after a login that is not answered yet, end the connection without an answer that could be taken for its', async (t) => {
  const { account: credentials, open } = await gatedAccount(t, system.database)
  const lines = gone().length
  assert.equal(await text(pipeline([loginRequest(credentials), 'no HTTP\r\n\r\n'])), '')
  await until(() => gone().length === lines + 1)
  open()
  await queue.settled(0, 0)
  assert.equal(await sessionsOf(credentials), 0)
  // With nothing unanswered before them they are answered.
  assert.match(await text(pipeline(['no HTTP\r\n\r\n'])), /^HTTP\/1\.1 400 /)
})

test('when a connection ends all its requests are cancelled, logged, counted and traced, and open no session', async () => {
  const credentials = await gateway.api.newAccount()
  await queue.settled(0, 0)
  const [lines, counted, spans] = [gone().length, await countedAsGone(), spansOfGone()]
  await whileFrozen(worker, async () => {
    const socket = pipeline(
      Array.from({ length: LOGINS }, (_, n) =>
        loginRequest(credentials, n % 5 === 4 ? 'Prefer: respond-async\r\n' : ''),
      ),
    )
    await queue.settled(LOGINS, 0)
    // Redis has the jobs before the gateway has its answer, and knows their ids.
    await until(async () => (await readMetric(gateway.opsUrl, 'spillway_requests_in_hand')) === 0)
    socket.destroy()
    await queue.settled(0, 0)
  })
  await until(() => gone().length === lines + LOGINS)
  const jobs = gone().slice(lines)
  assert.equal(new Set(jobs).size, LOGINS)
  for (const jobId of jobs) assert.equal(await queue.holds(String(jobId)), false)
  assert.equal(await countedAsGone(), counted + LOGINS)
  await until(() => spansOfGone() === spans + LOGINS)
  assert.equal(await sessionsOf(credentials), 0)
})

test('a login whose answer cannot be written yet opens no session before it can', async (t) => {
  const credentials = await gateway.api.newAccount()
  const { account: slow, open } = await gatedAccount(t, system.database)
  const [lines, results] = [gone().length, await resultsReceived()]
  const socket = pipeline([loginRequest(slow), ...Array<string>(LOGINS - 1).fill(loginRequest(credentials))])
  await until(async () => (await resultsReceived()) === results + LOGINS - 1)
  await queue.settled(0, 1)
  socket.destroy()
  await until(() => gone().length === lines + LOGINS)
  open()
  await queue.settled(0, 0)
  assert.deepEqual([await sessionsOf(slow), await sessionsOf(credentials)], [0, 0])
})

test('a connection may carry thousands of requests: nothing is kept of those that were answered', async (t) => {
  const app = fastify()
  t.onTestFinished(() => app.close())
  await app.register(clientGonePlugin)
  const left: string[] = []
  const listening: number[] = []
  app.onClientGone(({ url }) => left.push(url))
  app.get('/', async ({ raw }) => {
    listening.push(raw.socket.listenerCount('close'))
    return 'ok'
  })
  app.get('/held', async ({ clientGone }) => new Promise((resolve) => clientGone.addEventListener('abort', resolve)))
  const { port } = new URL(await app.listen({ port: 0 }))
  const socket = connect(Number(port), 'localhost')
  let received = ''
  socket.on('data', (bytes) => {
    received += bytes
  })
  const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
  socket.write(request('/').repeat(3_000))
  await until(() => received.split('HTTP/1.1 200').length - 1 === 3_000)
  assert.equal(Math.max(...listening), Math.min(...listening))
  const closed = new Promise((resolve) => app.server.once('request', ({ socket }) => socket.once('close', resolve)))
  socket.write(request('/held').repeat(3))
  await new Promise((resolve) => app.server.once('request', resolve))
  socket.destroy()
  await closed
  assert.deepEqual(left, ['/held', '/held', '/held'])
})

function spansOfGone(): number {
  return collector.spans.filter(
    ({ name, attributes }) => name === 'POST /v1/login' && Number(attributes['http.response.status_code']) === 499,
  ).length
}
