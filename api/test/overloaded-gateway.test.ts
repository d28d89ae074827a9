// A gateway that is behind with its own work, here because its database stands still: who is refused, how, and until when.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/local/testing'
import { call, expect, login, newAccount, refresh } from './client.ts'
import { openSystem } from './system.ts'

const system = await openSystem()
after(() => system.close())
await system.worker()
const gateway = await system.gateway()
const { url, opsUrl } = gateway
const account = await newAccount(url)

/** More than are in hand at a time. */
const MANY = 150
/** Longer than anybody waits in line. */
const ROOM_MS = 4_000

test('what it cannot do in time is refused, and nothing is left of it afterwards', { timeout: 120_000 }, async (t) => {
  const { refreshToken } = expect(200, await login(url, account))
  const leaving = new AbortController()
  const codes: string[] = []

  await system.database.$transaction(
    async (locked) => {
      await locked.$executeRaw`LOCK TABLE users IN ACCESS EXCLUSIVE MODE`
      const early = Array.from({ length: MANY }, (_, n) =>
        login(url, account, n < 20 ? { signal: leaving.signal } : {}).then(
          ({ body }) => codes.push(body.code),
          () => undefined,
        ),
      )
      await until(async () => (await metric('spillway_requests_in_hand')) === 100)
      assert.equal(codes.length, 0)

      await t.test('probes are answered meanwhile, and the public keys', async () => {
        expect(200, await call(url, 'GET', '/healthz'))
        expect(200, await call(url, 'GET', '/.well-known/jwks.json'))
      })
      await t.test('whoever waits in line for too long is told so', async () => {
        // Those in hand wait for the database, and are told so when their queries are given up.
        await until(() => codes.includes('busy'))
      })
      await t.test('once there has been a line for long, a request is refused before its body is read', async () => {
        // Somebody is in line at every moment.
        const stopAsking = keepAsking()
        try {
          const [refused, next] = await until(() => unreadThen('GET /healthz'), { timeoutMs: 30_000 })
          assert.match(refused, /^HTTP\/1\.1 503 .*retry-after: [1-9]\d?\r\n/is)
          assert.match(refused, /cache-control: no-store\r\n/i)
          assert.match(refused, /application\/problem\+json.*"code":"busy"/s)
          assert.match(next, /^HTTP\/1\.1 200 /)
          // One that is too large to be skipped ends the connection.
          await until(async () => /^HTTP\/1\.1 503 .*connection: close/is.test(await unread(1_000_000)), {
            timeoutMs: 30_000,
          })
        } finally {
          await stopAsking()
        }
      })
      leaving.abort()
      void early
    },
    { timeout: 90_000 },
  )

  await t.test('it is over two seconds later: everyone is served, and a session goes on', async () => {
    await sleep(2_000)
    for (const answer of await Promise.all(Array.from({ length: 50 }, () => login(url, account)))) expect(200, answer)
    expect(200, await refresh(url, refreshToken))
  })
  await t.test('nothing is in hand any more, of those who left either', async () => {
    await until(async () => (await metric('spillway_requests_in_hand')) === 0)
  })
  await t.test('operators see how many were refused for it', async () => {
    assert.ok((await metric('spillway_refused_total', 'reason="gateway_overloaded"')) >= 1)
    const labels = 'method="POST",route="/v1/login",status="503",outcome="busy"'
    assert.ok((await metric('spillway_http_requests_total', labels)) >= 1)
  })
})

/** So many log in over and over, until they are told to end, that some are always in line. */
function keepAsking(): () => Promise<void> {
  let isOver = false
  const asking = Array.from({ length: 2 * MANY }, async () => {
    while (!isOver) await login(url, account)
  })
  return async () => {
    isOver = true
    await Promise.all(asking)
  }
}

/**
 * What a login is answered whose body has not been sent, and what the request after it on the same connection is. Undefined
 * where there was room for it.
 */
async function unreadThen(next: string): Promise<[refused: string, next: string] | undefined> {
  const length = 10
  const socket = connectTo(url)
  try {
    socket.write(head(length))
    const refused = await Promise.race([once(socket, 'data'), sleep(ROOM_MS)])
    if (refused === undefined) return undefined
    socket.write(`${'x'.repeat(length)}${next} HTTP/1.1\r\nhost: test\r\n\r\n`)
    return [String(refused), String(await once(socket, 'data'))]
  } finally {
    socket.destroy()
  }
}

async function unread(length: number): Promise<string> {
  const socket = connectTo(url)
  socket.write(head(length))
  const refused = await Promise.race([once(socket, 'data'), sleep(ROOM_MS)])
  socket.destroy()
  return String(refused)
}

function connectTo(to: string): Socket {
  return connect(Number(new URL(to).port), '127.0.0.1').setEncoding('utf8')
}

function head(length: number): string {
  return `POST /v1/login HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`
}

async function metric(name: string, labels = ''): Promise<number> {
  const page = await (await fetch(`${opsUrl}/metrics`)).text()
  const line = page.split('\n').find((each) => each.startsWith(labels === '' ? `${name} ` : `${name}{${labels}}`))
  return Number(line?.split(' ').at(-1))
}
