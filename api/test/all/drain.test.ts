// A gateway that was told to stop answers for DRAIN_MS on all ports, once on each connection.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { until } from '@spillway/infra/processes/until'
import { type TestContext, test } from 'vitest'
import { openSystem } from '../system.ts'

const system = await openSystem()
const stopped = { code: 0, signal: null }
const serviceKey = randomBytes(32).toString('base64')
const LONGEST = { DRAIN_MS: '300000', SERVICE_KEYS: `shop:${serviceKey}`, SERVICE_PORT: '0' }

test('after SIGTERM each answer ends its connection, on every port, on kept and new connections', async (t) => {
  const gateway = await system.gatewayProcess(LONGEST)
  const urls = [gateway.url, gateway.serviceUrl ?? '', gateway.opsUrl]
  const kept = await Promise.all(urls.map((url) => opened(t, url)))
  for (const connection of kept) assert.doesNotMatch(await connection.ask('GET /nothing'), /connection: close/i)
  gateway.signal('SIGTERM')
  await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 503)
  const fresh = await Promise.all(urls.map((url) => opened(t, url)))
  for (const connection of [...kept, ...fresh]) {
    assert.match(await connection.ask('GET /nothing'), /^HTTP\/1\.1 404 .*^connection: close/ims)
    await until(() => connection.isEnded())
  }
  // At a terminal nobody waits for balancers.
  assert.deepEqual(await gateway.stop('SIGINT'), stopped)
})

test('of pipelined requests only the last one is answered for the last time: the others would get no answer', async (t) => {
  const gateway = await system.gatewayProcess(LONGEST)
  gateway.signal('SIGTERM')
  await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 503)
  const connection = await opened(t, gateway.url)
  connection.socket.write('GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(5))
  await until(() => connection.received().match(/HTTP\/1\.1 404/g)?.length === 5, { what: 'five answers' })
  // What follows is answered as well, and that ends the connection.
  if (!connection.isEnded()) await connection.ask('GET /nothing')
  await until(() => connection.isEnded())
  assert.deepEqual(await gateway.stop('SIGINT'), stopped)
})

test('Ctrl-C does not wait, whatever DRAIN_MS is', async () => {
  const gateway = await system.gatewayProcess(LONGEST)
  assert.deepEqual(await gateway.stop('SIGINT'), stopped)
})

test('a gateway that drained for its time stops by itself', async () => {
  const gateway = await system.gatewayProcess({ DRAIN_MS: '500' })
  assert.deepEqual(await gateway.stop(), stopped)
})

interface Connection {
  socket: Socket
  /** Sends a request without a body, and resolves with the next answer. */
  ask(line: string): Promise<string>
  received(): string
  isEnded(): boolean
}

async function opened(t: TestContext, url: string): Promise<Connection> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  t.onTestFinished(() => void socket.destroy())
  let text = ''
  let isEnded = false
  socket.on('data', (data) => (text += data)).on('end', () => (isEnded = true))
  await once(socket, 'connect')
  return {
    socket,
    async ask(line) {
      const before = text.length
      socket.write(`${line} HTTP/1.1\r\nHost: x\r\n\r\n`)
      return await until(() => (/^HTTP.*\r\n\r\n/s.test(text.slice(before)) ? text.slice(before) : undefined))
    },
    received: () => text,
    isEnded: () => isEnded,
  }
}
