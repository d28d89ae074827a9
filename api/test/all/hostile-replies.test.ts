// Replies that Redis never gives: no request is answered 500, and logins work again afterwards.

import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import { listening } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { slowAccount } from '../account.ts'
import { newCredentials, respondAsync } from '../client.ts'
import { shareSystem } from '../system.ts'

// A Redis under an attacker's control: a proxy that changes whole replies on their way.

/** Makes other replies of those that came together: none, more, in another order. */
type Tamper = (replies: Buffer[]) => Buffer[]

async function startHostileRedis(redisUrl: string) {
  const { hostname, port } = new URL(redisUrl)
  const sockets = new Set<Socket>()
  let tamper: Tamper | undefined
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    }
    client.pipe(upstream)
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
    let rest: Buffer = Buffer.alloc(0)
    upstream.on('data', (data) => {
      const { replies, left } = split(Buffer.concat([rest, data]))
      rest = left
      for (const reply of tamper?.(replies) ?? replies) client.write(reply)
    })
  })
  const url = new URL(redisUrl)
  url.host = `127.0.0.1:${await listening(server)}`
  return {
    url: url.href,
    /** Changes replies from now on; undefined for none. */
    tamper(by: Tamper | undefined): void {
      tamper = by
    },
    close(): void {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function split(bytes: Buffer): { replies: Buffer[]; left: Buffer } {
  const replies: Buffer[] = []
  let start = 0
  for (let end = endOf(bytes, 0); end !== undefined; end = endOf(bytes, start)) {
    replies.push(bytes.subarray(start, end))
    start = end
  }
  return { replies, left: bytes.subarray(start) }
}

/** Where the reply that begins here ends (RESP 2 and 3); undefined when it is not whole. */
function endOf(bytes: Buffer, start: number): number | undefined {
  const line = bytes.indexOf('\r\n', start)
  if (line < 0) return undefined
  const kind = String.fromCharCode(bytes[start] ?? 0)
  const count = Number(bytes.toString('latin1', start + 1, line))
  let end = line + 2
  if ('$!='.includes(kind)) return count < 0 ? end : end + count + 2 <= bytes.length ? end + count + 2 : undefined
  if (!'*~>%|'.includes(kind)) return end
  for (let n = kind === '%' || kind === '|' ? 2 * count : count; n > 0; n -= 1) {
    const next = endOf(bytes, end)
    if (next === undefined) return undefined
    end = next
  }
  return end
}

const system = await shareSystem()
const hostile = await startHostileRedis(system.namespace.redisUrl)
afterAll(async () => {
  hostile.tamper(undefined)
  await system.close()
  hostile.close()
})
const limits = { LIMIT_PER_ADDRESS: '100000', LIMIT_PER_ACCOUNT: '100000', LIMIT_REDEEM_PER_ADDRESS: '100000' }
const env = { ...limits, GUESSES_PER_ACCOUNT: '100000', REDIS_URL: hostile.url, LOGIN_WAIT_MS: '1000' }
const { api } = await system.gateway(env)
const owner = await slowAccount(system.database, 1)

const always =
  (reply: string): Tamper =>
  (replies) =>
    replies.map(() => Buffer.from(reply))
const kept: Buffer[] = []
let passed = 0
const tampering: Record<string, Tamper> = {
  // First: the connections of operators need some seconds until they are made again.
  'every other reply': (replies) => replies.filter(() => ++passed % 2 === 0),
  nothing: always('_\r\n'),
  'no text': always('$-1\r\n'),
  'a number': always(':7\r\n'),
  'the largest number': always(':9223372036854775807\r\n'),
  'a number below 0': always(':-1\r\n'),
  'no number': always(',nan\r\n'),
  yes: always('#t\r\n'),
  OK: always('+OK\r\n'),
  'a text': always('$3\r\nabc\r\n'),
  'an empty list': always('*0\r\n'),
  'a list of nothing': always('*9\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n'),
  'a list of texts': always('*7\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n'),
  'a list of lists': always('*2\r\n*1\r\n:1\r\n*1\r\n:1\r\n'),
  'a map': always('%1\r\n+a\r\n:1\r\n'),
  'an error': always('-ERR no\r\n'),
  'the replies of others': (replies) => replies.toReversed(),
  'old replies': (replies) =>
    replies.map((reply) => {
      kept.push(reply)
      return kept[kept.length >> 1] ?? reply
    }),
  'each reply twice': (replies) => replies.flatMap((reply) => [reply, reply]),
}

/** What may be said of a login, or a ticket, whatever Redis says. */
const EXPECTED = [200, 202, 400, 401, 409, 410, 429, 503]

for (const [what, tamper] of Object.entries(tampering)) {
  test(`${what} in the place of replies is answered as an outage is, and a right password is let in afterwards`, async () => {
    const { body } = await api.login(owner, respondAsync)
    hostile.tamper(tamper)
    const asked = Array.from({ length: 8 }, (_, n) => [
      api.login(n % 2 ? owner : newCredentials(), { keepTicket: true }),
      api.login(owner, respondAsync),
      ...(body.ticket === undefined ? [] : [api.redeem(body.ticket, respondAsync)]),
    ]).flat()
    const answers = await Promise.all(asked)
    hostile.tamper(undefined)
    for (const { status, body } of answers) assert.ok(EXPECTED.includes(status), `${status} ${JSON.stringify(body)}`)
    await until(async () => (await api.login(owner, { keepTicket: true })).status === 200, { what: 'a login' })
    await until(async () => (await api.call('GET', '/readyz')).status === 200, { what: 'a gateway that is ready' })
  })
}
