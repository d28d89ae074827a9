// Floods of what is no request, or a malformed one, on raw connections: after a hundred of them
// each is answered in its time. The clock of the gateway, which is in this process, stands
// meanwhile.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/infra/processes/until'
import { afterAll, test, vi } from 'vitest'
import { expect } from '../client.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const sockets: Socket[] = []
afterAll(() => {
  for (const socket of sockets) socket.destroy()
})
const { api } = await system.gateway({ LIMIT_PER_ADDRESS: '0' })

const head = (line: string, ...headers: string[]) => `${[`${line} HTTP/1.1`, ...headers].join('\r\n')}\r\n\r\n`
const post = (body: string, length = body.length) =>
  head('POST /v1/tickets/redeem', 'Host: x', 'Content-Type: application/json', `Content-Length: ${length}`) + body
const kinds: Record<string, string> = {
  'no path': head('GET /nowhere', 'Host: x'),
  'a path that cannot be decoded': head('GET /v1/%zz', 'Host: x'),
  'another method': head('GET /v1/tickets/redeem', 'Host: x'),
  'bytes that are not HTTP': 'made up\r\n\r\n',
  'headers without an end': head('GET /healthz', 'Host: x', `X: ${'x'.repeat(20_000)}`),
  'no Host': head('GET /healthz'),
  'no JSON': post('{made up'),
  'a body that is too long': post('', 1_000_000),
  'a field that is missing': post('{}'),
  'another media type': `${head('POST /v1/tickets/redeem', 'Host: x', 'Content-Type: text/plain', 'Content-Length: 1')}x`,
  'a made-up ticket': post('{"ticket":"made up"}'),
}
/** Rejections that are answered while the clock stands: a second's, and those due in a batch with them. */
const ANSWERED = 111
const FLOOD = 150

test('whatever is malformed is held once many have come, and other requests go before it', async () => {
  const answered: string[] = []
  async function send(kind: string, bytes: string): Promise<void> {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.once('data', (answer) => {
      assert.match(String(answer), /^HTTP\/1\.1 4\d\d /)
      answered.push(kind)
    })
    await once(socket, 'connect')
    socket.write(bytes)
  }
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
  let flooded = 0
  for (let n = 0; n < FLOOD; n += 1) void api.call('GET', '/nowhere').finally(() => (flooded += 1))
  await until(() => flooded >= ANSWERED)
  await Promise.all(Object.entries(kinds).map(([kind, bytes]) => send(kind, bytes)))
  for (let n = 0; n < 20; n += 1) expect(200, await api.call('GET', '/healthz'))
  // The gateway has read all of them by then, as a rule: without the hold all were answered.
  await sleep(300)
  assert.deepEqual(answered, [])
  clock.mockRestore()
  await until(() => answered.length === Object.keys(kinds).length)
})

/** Asks again and again on one connection; counts answers a moment after so many have come */
async function answersInARow(path: string, expected: number): Promise<number> {
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
  let answers = 0
  let received = ''
  socket.on('data', (bytes) => {
    received += bytes
    // An answer may come in parts, the last of them with the beginning of the next answer.
    for (const begun = received.split('HTTP/1.1 200').length - 1; answers < begun; answers += 1)
      socket.write(head(`GET ${path}`, 'Host: x'))
  })
  socket.write(head(`GET ${path}`, 'Host: x'))
  await until(() => answers >= expected, { what: `${expected} answers` })
  await sleep(300)
  // It would go on, and take answers from the next connection.
  socket.destroy()
  return answers
}

for (const [n, path] of ['/v1/line', '/.well-known/jwks.json', '/healthz'].entries())
  test(`beyond a hundred at once each connection gets one answer a second of ${path}, and a new connection its first`, async () => {
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000 * (n + 1))
    assert.equal(await answersInARow(path, 100), 100)
    assert.equal(await answersInARow(path, 1), 1)
    expect(200, await api.call('GET', path))
    clock.mockRestore()
  })
