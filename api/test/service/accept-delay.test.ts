// Connections that wait to be accepted are noticed, by a real listening socket.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { OverloadGuard, UPDATE_MS } from '../../src/overload.ts'

const CONNECTIONS = 500

test('the guard reports a delay while connections wait to be accepted', async (t) => {
  const guard = new OverloadGuard({ loopDelayMs: () => 0 })
  const server = createServer((socket) => socket.end()).listen({ host: '127.0.0.1', port: 0, backlog: CONNECTIONS })
  t.onTestFinished(() => void server.close())
  await once(server, 'listening')
  guard.watch(server)
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  let accepted = 0
  server.on('connection', () => accepted++)
  for (let n = 0; n < CONNECTIONS; n++)
    connect({ host: '127.0.0.1', port: address.port })
      .on('error', () => undefined)
      .resume()
  while (accepted === 0) await turn()
  guard.update(UPDATE_MS)
  assert.ok(accepted < CONNECTIONS / 2, 'most were accepted at once')
  assert.ok(guard.delayMs() > 0, 'the connections that wait are not noticed')
  await until(() => accepted === CONNECTIONS)
  await until(() => {
    guard.update(UPDATE_MS)
    return guard.delayMs() === 0
  })
})
