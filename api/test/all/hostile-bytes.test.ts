// Connections that send anything but good requests and hang up at any moment leave nothing in hand.
import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { readMetric } from '@spillway/infra/harness/api-client'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { expect } from '../client.ts'
import { watchQueue } from '../queue.ts'
import { openSystem } from '../system.ts'

const CONNECTIONS = 500
const AT_A_TIME = 20

/** Out of reach, and yet counted in Redis: while a gateway waits for that, a connection can end. */
const limits = {
  LIMIT_PER_ADDRESS: '1000000',
  LIMIT_REDEEM_PER_ADDRESS: '1000000',
  LIMIT_REFRESH_PER_ADDRESS: '1000000',
}

const system = await openSystem()
await system.worker()
const { api, opsUrl } = await system.gatewayProcess(limits)
const account = await api.newAccount()

const post = (path: string, body: Buffer, headers = '') =>
  Buffer.concat([
    Buffer.from(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${headers}\r\n`,
    ),
    body,
  ])
const json = (value: unknown) => Buffer.from(JSON.stringify(value))
const noise = (most: number) => randomBytes(randomInt(1, most))
const email = () => `${randomBytes(6).toString('hex')}@example.test`
const repeat = <T>(most: number, make: () => T) => Array.from({ length: randomInt(1, most) }, make)

const kinds: (() => Buffer)[] = [
  () => noise(2_000),
  () => post('/v1/login', noise(4_000)),
  () => post('/v1/login', Buffer.concat([Buffer.from('{"email":"a@b.c","password":"'), noise(30), Buffer.from('"}')])),
  () => post('/v1/login', json({ email: email(), password: 'p'.repeat(randomInt(5_000)) })),
  () => Buffer.concat(repeat(20, () => post('/v1/login', json({ email: email(), password: 'x' })))),
  () => post('/v1/login', Buffer.from('['.repeat(10_000))),
  () => post('/v1/users', json({ email: email(), password: 'y' })),
  () => post('/v1/tickets/redeem', json({ ticket: noise(3_000).toString('base64url') })),
  () => post('/v1/token/refresh', json({ refreshToken: noise(60).toString('base64url') }), 'traceparent: 00-0-0-0\r\n'),
  () => post('/v1/login', json({}), 'Content-Length: 1\r\n'),
  () =>
    Buffer.concat([
      Buffer.from('GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer '),
      noise(300),
      Buffer.from('\r\n\r\n'),
    ]),
  () => Buffer.from(`GET /${'a'.repeat(randomInt(20_000))} HTTP/1.1\r\nHost: x\r\n\r\n`),
  () => Buffer.from(`GET / HTTP/1.1\r\nHost: x\r\n${repeat(200, () => `X-${email()}: x\r\n`).join('')}\r\n`),
  () =>
    Buffer.from(
      `POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${randomInt(5_000).toString(16)}\r\n${'x'.repeat(3_000)}`,
    ),
]

/** Sends it whole or in two pieces, hangs up at the answer or after a time; gives the status. */
async function send(bytes: Buffer, hangUpAfterMs: number): Promise<number | undefined> {
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1').on('error', () => undefined)
  await once(socket, 'connect')
  let answer = ''
  socket.on('data', (data) => {
    answer += data.toString('latin1')
  })
  const cut = randomInt(4) === 0 ? randomInt(bytes.length) : bytes.length
  socket.write(bytes.subarray(0, cut))
  if (cut < bytes.length) await sleep(randomInt(20))
  if (!socket.destroyed) socket.write(bytes.subarray(cut))
  // Not once(): it rejects where the gateway resets the connection, which it may.
  const heard = new Promise((resolve) => socket.on('data', resolve).on('close', resolve))
  if (hangUpAfterMs > 0 && !socket.destroyed) await Promise.race([heard, sleep(hangUpAfterMs)])
  // With and without what the system sends in an orderly end.
  if (randomInt(2) === 0) socket.resetAndDestroy()
  else socket.destroy()
  const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(answer) ?? []
  return status === undefined ? undefined : Number(status)
}

async function sendMany(count: number, next: () => Promise<unknown>): Promise<void> {
  let left = count
  await Promise.all(
    Array.from({ length: AT_A_TIME }, async () => {
      while (left-- > 0) await next()
    }),
  )
}

const inHand = () => readMetric(opsUrl, 'spillway_requests_in_hand')

test('whole requests whose clients hang up at once do not stay in hand', async () => {
  const request = post('/v1/tickets/redeem', json({ ticket: 'x' }))
  await sendMany(CONNECTIONS, () => send(request, 0))
  await until(async () => (await inHand()) === 0, { timeoutMs: 60_000 })
})

test('hostile bytes are the mistakes of clients, and nothing of them stays', async () => {
  const alone = []
  for (const kind of kinds) alone.push(await send(kind(), 2_000))
  assert.ok(new Set(alone).size > 3, alone.join())
  const statuses = new Set(alone)
  await sendMany(CONNECTIONS, async () => {
    const kind = kinds[randomInt(kinds.length)] ?? assert.fail()
    statuses.add(await send(kind(), randomInt(2) === 0 ? randomInt(30) : randomInt(100, 400)))
  })
  for (const status of statuses) {
    // A machine that is slow at the moment may have too many requests at a time for its gateway.
    assert.ok(status === undefined || status < 500 || status === 503, String(status))
  }
  await until(async () => (await inHand()) === 0, { timeoutMs: 60_000 })
  await watchQueue(system).settled(0, 0)
  expect(200, await api.login(account))
})
