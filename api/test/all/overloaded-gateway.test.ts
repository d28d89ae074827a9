// An overloaded gateway, whose database stands still: which requests are refused, how, how long.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { atOnce, expect, keepTicket } from '../client.ts'
import { openSystem } from '../system.ts'

const system = await openSystem()
await system.worker()
const gateway = await system.gateway({ CORS_ORIGINS: 'https://app.example.test' })
const { api, opsUrl } = gateway
const account = await api.newAccount()

/** More than are in hand at a time. */
const MANY = 600
const BODY_BYTES = 10
const IN_HAND = 500
/** However busy the machine is. */
const patience = { timeoutMs: 60_000 }

test('requests that a gateway cannot do in time are refused, and nothing is left of them afterwards', {
  timeout: 230_000,
}, async () => {
  const { refreshToken } = expect(200, await api.login(account))
  const leaving = new AbortController()
  /** The answers to the first requests, and to those that followed. */
  const [earlyCodes, codes]: [string[], string[]] = [[], []]

  await system.database.$transaction(
    async (locked) => {
      await locked.$executeRaw`LOCK TABLE users IN ACCESS EXCLUSIVE MODE`
      const early = Array.from({ length: MANY }, (_, n) =>
        api.login(account, { ...keepTicket, ...(n < 20 ? { signal: leaving.signal } : {}) }).then(
          ({ body }) => earlyCodes.push(body.code),
          () => undefined,
        ),
      )
      // A slow machine has not read the last of them when the first are given up.
      await until(async () => (await metric('spillway_requests_in_hand')) >= IN_HAND / 5, patience)

      // Probes are answered meanwhile, and the public keys.
      expect(200, await api.call('GET', '/healthz'))
      expect(200, await api.call('GET', '/.well-known/jwks.json'))
      leaving.abort()
      const stopAsking = keepAsking(codes)
      try {
        // Requests that are queued for too long are refused, and those in hand are not.
        await Promise.all(early)
        assert.ok(earlyCodes.filter((code) => code === 'busy').length <= MANY - IN_HAND)
        await until(() => codes.includes('busy'), patience)
        // Once requests have been queued for long, one is refused before its body is read.
        const { socket, answer: refused } = await refusedUnread(BODY_BYTES, /^HTTP\/1\.1 503 /)
        assert.match(refused, /^HTTP\/1\.1 503 .*retry-after: [1-9]\d?\r\n/is)
        assert.match(refused, /cache-control: no-store\r\n/i)
        assert.match(refused, /application\/problem\+json.*"code":"busy"/s)
        // A page of an allowed origin can read it, and when to come back.
        assert.match(refused, /access-control-allow-origin: https:\/\/app\.example\.test\r\n/i)
        assert.match(refused, /access-control-expose-headers: [^\r]*retry-after/i)
        const preflight = { origin: 'https://app.example.test', 'access-control-request-method': 'POST' }
        assert.equal((await api.call('OPTIONS', '/v1/login', { headers: preflight })).status, 204)
        socket.write(`${'x'.repeat(BODY_BYTES)}GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n`)
        assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 200 /)
        socket.destroy()
        // One that is too large to be read to its end ends the connection.
        const tooLarge = await refusedUnread(1_000_000, /^HTTP\/1\.1 503 .*connection: close/is)
        tooLarge.socket.destroy()
      } finally {
        await stopAsking()
      }
    },
    { timeout: 200_000 },
  )

  // Once it is over everyone is served, and a session goes on.
  await until(async () => {
    const answers = await atOnce(50, () => api.login(account))
    return answers.every(({ status }) => status === 200)
  }, patience)
  expect(200, await api.refresh(refreshToken))
  // Nothing is in hand any more, of those who left either.
  await until(async () => (await metric('spillway_requests_in_hand')) === 0, patience)
  // Operators see how many were refused.
  assert.ok((await metric('spillway_refused_total', 'reason="gateway_overloaded"')) >= 1)
  const labels = 'method="POST",route="/v1/login",status="503",outcome="busy"'
  assert.ok((await metric('spillway_http_requests_total', labels)) >= 1)
})

/** More log in at any moment than are in hand at a time, until they are told to stop. */
function keepAsking(codes: string[]): () => Promise<void> {
  let isOver = false
  const asking = Array.from({ length: MANY + MANY / 4 }, async () => {
    while (!isOver) codes.push((await api.login(account, keepTicket)).body.code)
  })
  return async () => {
    isOver = true
    await Promise.all(asking)
  }
}

/**
 * Sends the heads of logins whose bodies do not follow, several a second, until an answer fits.
 * Where there is room for one, its body is waited for.
 */
async function refusedUnread(length: number, fits: RegExp): Promise<{ socket: Socket; answer: string }> {
  const sockets: Socket[] = []
  const answers: { socket: Socket; answer: string }[] = []
  const sending = setInterval(() => {
    const socket = connectTo(api.url)
    sockets.push(socket)
    socket.write(head(length))
    socket.once('data', (data) => answers.push({ socket, answer: String(data) }))
  }, 200)
  try {
    return await until(() => answers.find(({ answer }) => fits.test(answer)), patience)
  } finally {
    clearInterval(sending)
    const [kept] = answers.filter(({ answer }) => fits.test(answer))
    for (const socket of sockets) if (socket !== kept?.socket) socket.destroy()
  }
}

function connectTo(to: string): Socket {
  return connect(Number(new URL(to).port), '127.0.0.1').setEncoding('utf8')
}

function head(length: number): string {
  return `POST /v1/login HTTP/1.1\r\nhost: test\r\norigin: https://app.example.test\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`
}

async function metric(name: string, labels = ''): Promise<number> {
  const page = await (await fetch(`${opsUrl}/metrics`)).text()
  const line = page.split('\n').find((each) => each.startsWith(labels === '' ? `${name} ` : `${name}{${labels}}`))
  return Number(line?.split(' ').at(-1))
}
