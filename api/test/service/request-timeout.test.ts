// The time limit for a request to arrive: a byte now and then holds no connection for longer.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'vitest'
import { openSystem } from '../system.ts'

const TIMEOUT_MS = 1_000
/** Far more than it takes, also on a busy machine, and far less than Node's own 30 and 60 s. */
const LONG_MS = 15_000
const TICK_MS = 50

const system = await openSystem()
const { url, opsUrl } = await system.gateway({ REQUEST_TIMEOUT_MS: String(TIMEOUT_MS) })

/** Sends this at once, then byte after byte; gives the answer and how long the connection stood */
async function trickle(target: string, first: string): Promise<{ answer: string; leastMs: number; mostMs: number }> {
  const { hostname, port } = new URL(target)
  const socket = connect(Number(port), hostname)
  let answer = ''
  // A reset may follow the answer: bytes that nobody has read are on the way.
  socket.on('data', (bytes) => (answer += bytes)).on('error', () => {})
  const openedAt = performance.now()
  if (first !== '') socket.write(first)
  // Counted instead of measured: the count stands still while this process gets no processor.
  let ticks = 0
  const timer = setInterval(() => {
    ticks++
    if (first !== '') socket.write('x')
  }, TICK_MS)
  await new Promise((resolve) => socket.once('close', resolve))
  clearInterval(timer)
  return { answer, leastMs: performance.now() - openedAt, mostMs: ticks * TICK_MS }
}

const head = 'POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n'

test('a request that does not arrive in time is answered with 408 and its connection closed, whatever comes slowly', async () => {
  const requests = {
    'nothing at all': '',
    'a line': 'POST /v1/log',
    headers: head,
    'a body': `${head}\r\n{"email":"`,
    'a second request on a connection': `GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n${head}`,
  }
  await Promise.all(
    [url, opsUrl].flatMap((target) =>
      Object.entries(requests).map(async ([what, first]) => {
        const { answer, leastMs, mostMs } = await trickle(target, first)
        assert.match(answer, /HTTP\/1\.1 408 /, what)
        assert.ok(leastMs >= TIMEOUT_MS && mostMs < LONG_MS, `${what}: ${leastMs} to ${mostMs} ms`)
      }),
    ),
  )
})
