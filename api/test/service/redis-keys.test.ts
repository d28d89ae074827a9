// Every key in Redis is in the list of infra/sizing/REDIS.md, whatever is asked for.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { until } from '@spillway/infra/processes/until'
import { monitorRedis } from '@spillway/infra/rig/redis-monitor'
import { afterAll, test } from 'vitest'
import { type Call, expect, keepTicket, newCredentials, respondAsync } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { solve } from '../solve.ts'
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
  ...{ GUESSES_PER_ACCOUNT: '1', CHALLENGE_BITS: '4' },
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
  ...['lmove', 'rpoplpush', 'brpoplpush', 'xadd', 'pfadd', 'getset', 'append', 'zincrby'],
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
  const { challenge } = expect(429, await api.login(guess))
  expect(401, await api.login(guess, { headers: { 'spillway-challenge': solve(challenge) } }))
  const { ticket } = expect(202, await api.login(account, { headers: { ...device.headers, ...respondAsync.headers } }))
  await until(async () => (await api.redeem(ticket, keepTicket)).status === 200)
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

interface Row {
  /** Of the keys, without their prefix. */
  names: RegExp
  key: string
  lifeMs: number
  bytes: number
  isOfEntries: boolean
}

/** The rows of the list, one for each key that a row names. */
async function readList(): Promise<Row[]> {
  const page = await readFile(new URL('../../../infra/sizing/REDIS.md', import.meta.url), 'utf8')
  return Array.from(page.matchAll(/^\| (`.*`) \| .* \| (none|\d+ s) \| .* \| ([\d,]+)( an entry)? \|$/gm)).flatMap(
    ([, keys = '', life = '', bytes = '', entries]) =>
      Array.from(keys.matchAll(/`([^`]+)`/g), ([, key = '']) => ({
        key,
        names: new RegExp(
          `^${key
            .replaceAll('.', '\\.')
            .replaceAll(/<(job|mail)>/g, '[0-9a-f]{8}-[0-9a-f-]{27}')
            .replaceAll(/<\w+>/g, '[^:]+(?:::/\\d+)?')}$`,
        ),
        lifeMs: life === 'none' ? Number.POSITIVE_INFINITY : Number.parseInt(life, 10) * 1_000,
        bytes: Number(bytes.replaceAll(',', '')),
        isOfEntries: entries !== undefined,
      })),
  )
}

async function entriesOf(key: string): Promise<number> {
  const count = { list: redis.llen, zset: redis.zcard, stream: redis.xlen, hash: redis.hlen, set: redis.scard }
  const type = await redis.type(key)
  return Object.hasOwn(count, type) ? Number(await Reflect.get(count, type).call(redis, key)) : 1
}

/**
 * What nothing here brings about: a worker or mail server that fails, several Redis servers, an
 * attack, a crowd, a line before known devices, tickets of applications.
 */
const RARE =
  /^last-known$|^absent$|^returned$|^line$|^passwords:(failed|stalled|delayed)$|^mail:(failed|delayed|stalled|pc|prioritized)$|^probe:|^used:|:noticed$|:behind$|\.upgrade$/

/** An empty collection of any size takes less, in bytes. */
const COLLECTION_BYTES = 500

test('every key that is written is in the list, lives no longer than it says, and takes no more', async () => {
  const rows = await readList()
  assert.ok(rows.length > 40, `${rows.length} rows`)
  await system.worker()
  await useEverything()
  const nameOf = (key: string) => key.slice(namespace.queuePrefix.length + 1)
  // Some are written once a second.
  const unseen = () =>
    rows.filter(({ key, names }) => !RARE.test(key) && ![...written()].some((each) => names.test(nameOf(each))))
  await until(() => unseen().length === 0).catch(() => assert.deepEqual(unseen(), []))
  for (const key of written()) {
    const name = nameOf(key)
    const row = rows.find(({ names }) => names.test(name)) ?? assert.fail(`${name} is not in the list`)
    const [lifeMs, bytes] = [await redis.pttl(key), Number(await redis.memory('USAGE', key))]
    if (lifeMs === -2) continue
    if (lifeMs === -1) assert.equal(row.lifeMs, Number.POSITIVE_INFINITY, `${name} has no end`)
    assert.ok(lifeMs <= row.lifeMs, `${name} lives for ${lifeMs} ms`)
    const most = row.isOfEntries ? COLLECTION_BYTES + row.bytes * (await entriesOf(key)) : row.bytes
    assert.ok(bytes <= most, `${name} takes ${bytes} bytes, and ${most} in the list`)
  }
})
