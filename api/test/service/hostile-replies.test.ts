// Replies that Redis never gives, in the place of its own: no request is answered 500, and logins work again once they end.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { slowAccount } from '../account.ts'
import { call, login, newCredentials, redeem, respondAsync } from '../client.ts'
import { startHostileRedis, type Tamper } from '../hostile-redis.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const hostile = await startHostileRedis(system.namespace.redisUrl)
afterAll(async () => {
  hostile.tamper(undefined)
  await system.close()
  hostile.close()
})
const limits = { LIMIT_PER_ADDRESS: '100000', LIMIT_PER_ACCOUNT: '100000', LIMIT_REDEEM_PER_ADDRESS: '100000' }
const env = { ...limits, GUESSES_PER_ACCOUNT: '100000', REDIS_URL: hostile.url, LOGIN_WAIT_MS: '1000' }
const { url } = await system.gateway(env)
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
    const { body } = await login(url, owner, respondAsync)
    hostile.tamper(tamper)
    const asked = Array.from({ length: 8 }, (_, n) => [
      login(url, n % 2 ? owner : newCredentials(), { keepTicket: true }),
      login(url, owner, respondAsync),
      ...(body.ticket === undefined ? [] : [redeem(url, body.ticket, respondAsync)]),
    ]).flat()
    const answers = await Promise.all(asked)
    hostile.tamper(undefined)
    for (const { status, body } of answers) assert.ok(EXPECTED.includes(status), `${status} ${JSON.stringify(body)}`)
    await until(async () => (await login(url, owner, { keepTicket: true })).status === 200, { what: 'a login' })
    await until(async () => (await call(url, 'GET', '/readyz')).status === 200, { what: 'a gateway that is ready' })
  })
}
