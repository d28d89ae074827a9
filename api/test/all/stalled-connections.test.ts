// Clients that send and do not read lose their connections; clients that merely wait do not.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { withDoubles } from '@spillway/infra/harness/spillway'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { slowAccount } from '../account.ts'
import { expect } from '../client.ts'
import { openSystem } from '../system.ts'

const TIMEOUT_MS = 1_000
/** Far more than that, also on a busy machine. */
const LONG_MS = 8_000
/** Together far more than both systems keep for a connection; as many as may be unanswered. */
const ANSWERS = 16

const system = await openSystem()
await system.worker({}, withDoubles)
const { api } = await system.gatewayProcess({ REQUEST_TIMEOUT_MS: String(TIMEOUT_MS) })

/** Asks for it many times without reading, and only then reads. Gives the bytes that came. */
async function readLate(target: string, path: string): Promise<number> {
  const { hostname, port } = new URL(target)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined).pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`.repeat(ANSWERS))
  await sleep(LONG_MS)
  let bytes = 0
  socket.on('data', (data) => {
    bytes += data.length
  })
  socket.resume()
  const closed = new Promise((resolve) => socket.once('close', resolve))
  // One that was not ended answers all, and stays.
  await Promise.race([closed, sleep(LONG_MS)])
  socket.destroy()
  return bytes
}

test('a connection on which nobody reads is ended', async () => {
  const path = '/docs/static/swagger-ui-bundle.js'
  // Where this machine stands still, it is a client that does not read.
  const size = await until(async () => (await (await fetch(api.url + path)).arrayBuffer()).byteLength)
  const bytes = await readLate(api.url, path)
  assert.ok(bytes > 0 && bytes < size * ANSWERS, `${bytes} of ${size * ANSWERS} bytes`)
})

test('a client that waits for its login for longer is answered', async () => {
  expect(200, await api.login(await slowAccount(system.database, 3 * TIMEOUT_MS)))
})
