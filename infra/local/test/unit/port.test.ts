import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'vitest'
import { freePort, onFreePort } from '../../src/processes/port.ts'
import { startStopwatch } from '../../src/rig/clocks.ts'
import { portsIn } from '../../src/start/places.ts'

test('a service whose port was taken meanwhile starts on another one', async (t) => {
  const preferred = await freePort()
  assert.ok(preferred < 32_768, 'not of those that the system gives to connections')
  const tried: number[] = []
  const started = await onFreePort(preferred, async (port) => {
    tried.push(port)
    if (port !== preferred) return port
    const quicker = createServer().listen(port, '127.0.0.1')
    await once(quicker, 'listening')
    t.onTestFinished(async () => void quicker.close())
    throw new Error('the port is taken')
  })
  assert.equal(tried.length, 2)
  assert.notEqual(started, preferred)
})

test('a service that fails for another reason is not started again', async () => {
  let starts = 0
  const start = async () => {
    starts += 1
    throw new Error('no')
  }
  await assert.rejects(onFreePort(undefined, start), /^Error: no$/)
  assert.equal(starts, 1)
})

test('a stopwatch goes on while this process waits, and stands still while it gets no turn', async () => {
  const elapsedMs = startStopwatch()
  while (elapsedMs() < 50) await sleep(10)
  const before = elapsedMs()
  for (const end = performance.now() + 300; performance.now() < end; );
  await sleep(10)
  assert.ok(elapsedMs() - before < 150, `${elapsedMs() - before} ms`)
})

test("a member's ports are read from its ready line, port 80 and IPv6 included", () => {
  assert.deepEqual(portsIn({ url: 'http://127.0.0.1:80', opsUrl: 'http://[::1]:9464' }), {
    PORT: '80',
    OPS_PORT: '9464',
  })
  const service = { url: 'http://127.0.0.1:3000', opsUrl: 'http://127.0.0.1:1', serviceUrl: 'http://127.0.0.1:3100' }
  assert.equal(portsIn(service).SERVICE_PORT, '3100')
  assert.deepEqual(portsIn({ opsUrl: 'http://127.0.0.1:9465' }), { OPS_PORT: '9465' })
})
