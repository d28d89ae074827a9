// Every key in Redis has an end, apart from collections that are trimmed.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { monitorRedis } from '@spillway/infra/test/redis-monitor'
import { afterAll, test } from 'vitest'
import { asIs, type Call, expect, newCredentials, respondAsync } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { openSystem } from '../system.ts'

const mails = await startMailServer()
const system = await openSystem()
const { redis, namespace } = system
const monitor = await monitorRedis(namespace.redisUrl)
afterAll(() => monitor.close())

const serviceKey = randomBytes(32).toString('base64')
/** With every limit, and bounds that a test reaches. */
const env = {
  ...mails.env,
  ...{ SERVICE_KEYS: `shop:${serviceKey}`, SERVICE_PORT: '0', LIMIT_PER_SERVICE: '1000' },
  ...{ LIMIT_PER_ADDRESS: '1000', LIMIT_PER_ACCOUNT: '1000', LIMIT_REDEEM_PER_ADDRESS: '1000' },
  ...{ LIMIT_REFRESH_PER_ADDRESS: '1000', LIMIT_REFRESH_PER_SESSION: '1000' },
  ...{ LIMIT_MAIL_PER_RECIPIENT: '1000', LIMIT_MAIL_PER_NETWORK: '1000' },
  GUESSES_PER_ACCOUNT: '1',
}

const WRITES = new Set([
  ...[
    'set',
    'setex',
    'psetex',
    'incr',
    'incrby',
    'hset',
    'hmset',
    'hincrby',
    'zadd',
    'sadd',
    'lpush',
    'rpush',
    'linsert',
  ],
  ...['lmove', 'rpoplpush', 'brpoplpush', 'xadd', 'getset', 'append', 'zincrby'],
])

/** The keys of this system that commands have written so far. */
function written(): Set<string> {
  const ours = monitor.commands.filter(({ command: [name = ''] }) => WRITES.has(name))
  const keys = ours.flatMap(({ command: [name, ...args] }) =>
    /lmove|rpoplpush/.test(name ?? '') ? args.slice(0, 2) : args.slice(0, 1),
  )
  return new Set(keys.filter((key) => key.startsWith(`${namespace.queuePrefix}:`)))
}

async function useEverything(): Promise<void> {
  const { api, service } = await system.gateway(env)
  const { account, accessToken, refreshToken, deviceToken } = await api.signedIn()
  const device: Call = { headers: { 'spillway-device': deviceToken } }
  expect(200, await api.login(account, device))
  expect(401, await api.login({ ...account, password: 'a guess' }, device))
  const guess = newCredentials()
  expect(401, await api.login(guess))
  const { ticket } = expect(202, await api.login(account, { headers: { ...device.headers, ...respondAsync.headers } }))
  await until(async () => (await api.redeem(ticket, asIs)).status === 200)
  await api.forgotten(account.email)
  await mails.next(account.email, /Choose a new password/)
  const { token: confirmation } = await mails.next(account.email, /Confirm your e-mail/)
  expect(204, await api.confirmEmail(confirmation))
  expect(204, await api.changePassword(accessToken, account.password))
  await mails.next(account.email, /password was changed/)
  expect(200, await api.refresh(refreshToken))
  expect(204, await api.logout(refreshToken))
  expect(401, await api.call('GET', '/v1/me', { token: accessToken }))
  const body = { password: 'x' }
  const asked = expect(
    202,
    await service.call('POST', '/v1/passwords/hash', { token: serviceKey, body, ...respondAsync }),
  )
  await until(async () => (await service.redeem(asked.ticket, { token: serviceKey })).status === 200)
}

/** Jobs, which are removed when they end, their lists, and what BullMQ has once for a queue. */
const WITHOUT_END =
  /^(passwords:[0-9a-f-]{36}(\.\d+)?|mail:[\w-]{80}|(passwords|mail):(meta|id|events|marker|pc|wait|active|prioritized|delayed|completed|failed|stalled|stalled-check)|line)$/

test('every key that is written has an end', async () => {
  await system.worker()
  await useEverything()
  assert.ok(written().size > 30, `${written().size} keys`)
  for (const key of written()) {
    const name = key.slice(namespace.queuePrefix.length + 1)
    if (!WITHOUT_END.test(name)) assert.notEqual(await redis.pttl(key), -1, `${name} has no end`)
  }
})
