// How a gateway ends: what is in hand is answered, nothing else keeps it, nothing is left open.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { closedGate } from '@spillway/infra/harness/namespace'
import { withDoubles } from '@spillway/infra/harness/spillway'
import { type NodeProcess, startProcess } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'

import { type TestContext, test } from 'vitest'
import { accountWithHash, gatedAccount, slowAccount } from '../account.ts'
import { Client, expect, keepTicket, newCredentials } from '../client.ts'
import { openCollector } from '../otlp-collector.ts'
import { watchQueue } from '../queue.ts'
import { heldAnyway, openSystem } from '../system.ts'

const system = await openSystem()
await system.worker({ WORKER_CONCURRENCY: '4' }, withDoubles)
const queue = watchQueue(system)
const stopped = { code: 0, signal: null }

test('requests that are held at a SIGTERM are answered, whatever signals follow, new connections are refused, and the exit code is 0', async (t) => {
  const [gateway, other] = await Promise.all([system.gatewayProcess({ DRAIN_MS: '200' }), system.gateway()])
  const { api } = gateway
  const gate = await closedGate(t)
  const accounts = await Promise.all([1, 2, 3, 4].map(() => accountWithHash(system.database, gate.storedHash)))
  const held = accounts.map((account) => api.login(account, keepTicket))
  await queue.settled(0, 4)
  const exit = gateway.stop()
  await gateway.waitForLog(({ msg }) => msg === 'gateway stopping')
  for (const signal of ['SIGINT', 'SIGTERM'] as const) gateway.signal(signal)
  await until(() =>
    opened(t, api.url).then(
      () => false,
      () => true,
    ),
  )
  gate.open()
  for (const pending of held) {
    const answer = await pending
    // On a busy machine the wait may run out: then another gateway completes the ticket.
    expect(200, answer.status === 202 ? await other.api.redeem(answer.body.ticket) : answer)
  }
  assert.deepEqual(await exit, stopped)
  assert.equal(gateway.logs.filter(({ msg }) => msg === 'gateway stopping').length, 1)
})

test('a gateway that drains fails its readiness, answers everything else, and ends each connection with its answer, on every port', async (t) => {
  const SERVICE_KEYS = `shop:${randomBytes(32).toString('base64')}`
  const gateway = await system.gatewayProcess({ DRAIN_MS: '300000', SERVICE_KEYS, SERVICE_PORT: '0' })
  const urls = [gateway.url, gateway.serviceUrl ?? '', gateway.opsUrl]
  const kept = await Promise.all(urls.map((url) => opened(t, url)))
  for (const socket of kept) assert.doesNotMatch(await answerOn(socket), /connection: close/i)
  gateway.signal('SIGTERM')
  await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 503)
  expect(201, await gateway.api.register(newCredentials()))
  const fresh = await Promise.all(urls.map((url) => opened(t, url)))
  for (const socket of [...kept, ...fresh]) {
    assert.match(await answerOn(socket), /^HTTP\/1\.1 404 .*^connection: close/ims)
    await until(() => socket.readableEnded)
  }
  // At a terminal nobody waits for balancers.
  assert.deepEqual(await gateway.stop('SIGINT'), stopped)
})

test('a gateway that fails to close one thing closes the others, says so in its log, and with exit code 1', async (t) => {
  const collector = await openCollector()
  t.onTestFinished(() => collector.close())
  // Stands for whatever may fail on the way: the first timer that is cleared.
  const obstacle = `process.on("SIGTERM", () => {
    const clear = clearInterval
    clearInterval = () => {
      clearInterval = clear
      throw new Error("in the way")
    }
  })`
  const gateway = startObstructed(t, obstacle, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
  const { url } = await gateway.waitForLog(({ msg }) => msg === 'gateway listening')
  expect(401, await new Client(String(url)).login(newCredentials()))
  assert.deepEqual(await gateway.stop(), { code: 1, signal: null })
  const { err } = await gateway.waitForLog(({ level }) => level === 'error')
  assert.match(JSON.stringify(err), /could not .*in the way/)
  // They are sent at the end, or after five seconds.
  assert.ok(collector.spans.length > 0, 'the last traces were sent')
})

test('a request whose wait runs out while the gateway stops gets its ticket', async (t) => {
  const { api, close } = await system.gateway({ LOGIN_WAIT_MS: '4000' }, heldAnyway)
  const other = await system.gateway()
  const { account, open } = await gatedAccount(t, system.database)
  const held = api.login(account, keepTicket)
  await queue.settled(0, 1)
  const closed = close()
  const { ticket } = expect(202, await held)
  await closed
  open()
  expect(200, await other.api.redeem(ticket))
})

test('neither connections without a request, idle or never used, nor a log that nobody reads keep a gateway', async (t) => {
  // They would for longer than stop() waits.
  const gateway = await system.gatewayProcess({ REQUEST_TIMEOUT_MS: '300000', DRAIN_MS: '300000' })
  const { api } = gateway
  const unused = await opened(t, api.url)
  const idle = await opened(t, api.url)
  await send(idle, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(idle, 'data')
  gateway.closeStdout()
  expect(201, await api.register(newCredentials()))
  assert.deepEqual(await gateway.stop('SIGINT'), stopped)
  await until(() => unused.destroyed && idle.destroyed)
})

test('a request whose body never comes keeps a gateway no longer than one that is held', async (t) => {
  // A body may take longer than a test.
  const { api, close } = await system.gateway({ LOGIN_WAIT_MS: '0', REQUEST_TIMEOUT_MS: '300000' })
  const client = await opened(t, api.url)
  await send(
    client,
    'POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  )
  // Answered after it: by then the gateway has read what was sent before.
  expect(404, await api.call('GET', '/nothing'))
  await close()
})

test('a closed gateway leaves no connection open', async (t) => {
  const sockets = () => globalThis.process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
  const before = await until(() => sockets())
  for (let round = 0; round < 2; round += 1) {
    const extra = await openSystem(t)
    const { api } = await extra.gateway()
    expect(
      202,
      await api.login(await slowAccount(extra.database, 1), { ...keepTicket, headers: { connection: 'close' } }),
    )
    // Not compared with before: idle connections of earlier tests may have ended since.
    const open = sockets()
    await extra.close()
    await until(() => sockets() < open)
  }
  await until(() => sockets() <= before)
})

async function opened(t: Pick<TestContext, 'onTestFinished'>, url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  t.onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** The answer to a request for nothing that is there. */
async function answerOn(socket: Socket): Promise<string> {
  let text = ''
  const onData = (data: Buffer) => {
    text += data
  }
  socket.on('data', onData)
  await send(socket, 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => /^HTTP.*\r\n\r\n/s.test(text))
  return text
}

function send(socket: Socket, bytes: string): Promise<unknown> {
  return new Promise((resolve) => socket.write(bytes, resolve))
}

/** A gateway with something in the way of its end. */
function startObstructed(t: TestContext, obstacle: string, env: NodeJS.ProcessEnv): NodeProcess {
  const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(obstacle)}`]
  const gateway = startProcess({ entry: 'api/dist/main.js', nodeArgs, env: { ...system.environment, ...env } })
  t.onTestFinished(() => gateway.close())
  return gateway
}
