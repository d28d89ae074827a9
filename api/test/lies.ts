// What a writer to Redis can put in place of a key or into it; a system that has used every key.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { until } from '@spillway/infra/processes/until'
import { startProxy } from '@spillway/infra/rig/tcp-proxy'
import type { RedisConnection } from '@spillway/queue/queue-client'
import { nameInRedis } from './account.ts'
import { type Body, expect, keepTicket, newCredentials, respondAsync } from './client.ts'
import { startMailServer } from './mail-server.ts'
import { openSystem, readiness } from './system.ts'

/** What stands in angle brackets in the list of keys. */
type Names = Record<string, string>

const HIGHEST = '999999999999999'
const LONG = 'x'.repeat(100_000)

/** The values that are tried. */
const values: Record<string, string> = {
  'an empty text': '',
  '-1': '-1',
  'the highest number that counts': HIGHEST,
  '2^53': '9007199254740992',
  '2^63 - 1': '9223372036854775807',
  NaN: 'NaN',
  '100 kB': LONG,
}

/** Fields of hashes that are there only at times, by the end of their key. */
const rareFields: Record<string, string[]> = {
  meta: ['paused', 'concurrency', 'max', 'duration', 'opts.maxLenEvents'],
  line: ['number', 'abandoned'],
}

interface Lie {
  what: string
  tell(redis: RedisConnection, key: string): Promise<unknown>
}

/** Another type in place of a key; each value as its text; each value in it, if it holds several */
export const lies: Lie[] = [
  {
    what: 'another type',
    async tell(redis, key) {
      const isList = (await redis.type(key)) === 'list'
      // At once: the system may write the key at any time.
      const replaced = redis.multi().del(key)
      await (isList ? replaced.hset(key, 'x', 'x') : replaced.lpush(key, 'x')).exec()
    },
  },
  ...Object.entries(values).map(([what, value]) => ({
    what: `${what} in its place`,
    tell: async (redis: RedisConnection, key: string) => counts(key, value) || redis.set(key, value),
  })),
  ...Object.entries(values).map(([what, value]) => ({
    what: `${what} in it`,
    // Again where the system made the key anew, of another type, since its type was read.
    tell: async (redis: RedisConnection, key: string) =>
      counts(key, value) || add(redis, key, value).catch(() => add(redis, key, value)),
  })),
]

/** Whether it is a count of attempts like any other, which holds for its minute, hour or month. */
function counts(key: string, value: string): boolean {
  return value === HIGHEST && /:(limit|guesses):/.test(key)
}

async function add(redis: RedisConnection, key: string, value: string): Promise<unknown> {
  const number = Number.isFinite(Number(value)) ? Number(value) : 0
  switch (await typeOf(redis, key)) {
    case 'hash': {
      const fields = [...(await redis.hkeys(key)), ...(rareFields[key.split(':').at(-1) ?? ''] ?? [])]
      return await redis.hset(key, Object.fromEntries(['x', ...fields].map((field) => [field, value])))
    }
    case 'list':
      await redis.lpush(key, value)
      return await redis.rpush(key, value)
    case 'zset':
      return await redis.zadd(key, number, value, number, randomUUID(), 'inf', randomUUID(), '-inf', randomUUID())
    case 'set':
      return await redis.sadd(key, value)
    case 'stream':
      return await redis.xadd(key, '18446744073709551615-18446744073709551615', 'x', value)
    default:
      return await redis.set(key, value)
  }
}

const rareTypes: Record<string, string> = {
  ...{ absent: 'zset', prioritized: 'zset', delayed: 'zset', completed: 'zset', failed: 'zset', marker: 'zset' },
  ...{ behind: 'zset', pending: 'zset', line: 'hash', wait: 'list', active: 'list', stalled: 'set' },
}

async function typeOf(redis: RedisConnection, key: string): Promise<string> {
  const type = await redis.type(key)
  return type === 'none' ? (rareTypes[key.split(':').at(-1) ?? ''] ?? 'string') : type
}

/** Every key listed in infra/sizing/REDIS.md: as it is in Redis, with these names, or made up */
async function listedKeys(redis: RedisConnection, prefix: string, names: Names): Promise<string[]> {
  const page = await readFile(new URL('../../infra/sizing/REDIS.md', import.meta.url), 'utf8')
  const listed = Array.from(page.matchAll(/^\| (`.*`) \| .* \| (?:none|\d+ s) \|/gm)).flatMap(([, cell = '']) =>
    Array.from(cell.matchAll(/`([^`]+)`/g), ([, key = '']) => key),
  )
  const found = await redis.keys(`${prefix.replaceAll(/[{}]/g, '\\$&')}:*`)
  return listed.flatMap((key) => {
    const named = `${prefix}:${key.replaceAll(/<(\w+)>/g, (whole, name) => names[name] ?? whole)}`
    const pattern = new RegExp(
      `^${escaped(named)
        .replaceAll(/<(?:job|mail)>/g, '[0-9a-f-]{36}')
        .replaceAll(/<\w+>/g, '[^:]+')}$`,
    )
    const there = found.filter((each) => pattern.test(each)).slice(0, 2)
    return there.length > 0 ? there : [named.replaceAll(/<\w+>/g, () => randomUUID())]
  })
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

/** A system with a worker and mail, and a gateway that uses everything. */
export async function openLiedTo() {
  const system = await openSystem()
  const mails = await startMailServer()
  const { redis, namespace } = system
  const { hostname, port } = new URL(namespace.redisUrl)
  let connections = 0
  const proxy = await startProxy(namespace.redisUrl, () => {
    connections += 1
    return { host: hostname, port: Number(port) }
  })
  await system.worker()
  const many = '100000'
  const { api } = await system.gateway({
    ...mails.env,
    ...{
      REDIS_URL: proxy.url,
      LOGIN_WAIT_MS: '2000',
      SERVICE_KEYS: `shop:${randomBytes(32).toString('base64')}`,
      SERVICE_PORT: '0',
    },
    ...{ LIMIT_PER_ADDRESS: many, LIMIT_PER_ACCOUNT: many, LIMIT_REDEEM_PER_ADDRESS: many },
    ...{ LIMIT_REFRESH_PER_ADDRESS: many, LIMIT_REFRESH_PER_SESSION: many },
    ...{ LIMIT_MAIL_PER_RECIPIENT: many, LIMIT_MAIL_PER_NETWORK: many },
  })
  const { account: owner, deviceToken } = await api.signedIn()
  const device = { headers: { 'spillway-device': deviceToken } }

  /** As a user, each once. Throws where one is not served. */
  const uses: Record<string, () => Promise<unknown>> = {
    async login() {
      const { refreshToken } = expect(200, await api.login(owner, keepTicket))
      expect(200, await api.refresh(refreshToken))
    },
    'a known device': async () => expect(200, await api.login(owner, { ...device, ...keepTicket })),
    'a wrong password': async () => expect(401, await api.login(newCredentials(), keepTicket)),
    async 'a ticket'() {
      const { ticket, number } = await begun()
      assert.ok(Number.isSafeInteger(number) && number > 0, `number ${number}`)
      await until(async () => (await api.redeem(ticket, keepTicket)).status === 200, { timeoutMs: 5_000 })
    },
    async 'a registration and its mail'() {
      const account = newCredentials()
      expect(201, await api.register(account, keepTicket))
      await until(() => mails.to(account.email).length > 0, { timeoutMs: 5_000 })
    },
    async 'the counts of the live page'() {
      assert.equal(await redis.type(`${namespace.queuePrefix}:gateways`), 'hash')
    },
    async readiness() {
      const { status, workers } = await readiness(api.url)
      assert.deepEqual({ status, workers }, { status: 'ok', workers: 1 })
    },
  }

  async function begun(): Promise<Body> {
    return expect(202, await api.login(owner, respondAsync))
  }

  async function everythingWorks(): Promise<void> {
    for (const [what, use] of Object.entries(uses))
      await until(() => use().then(() => true), { what, timeoutMs: 20_000 })
  }

  await everythingWorks()
  expect(401, await api.login({ ...owner, password: 'a guess' }))
  expect(401, await api.login({ ...owner, password: 'a guess' }, device))
  const names = { account: nameInRedis(system, owner.email), network: '127.0.0.1', name: 'shop' }
  return {
    redis,
    begun,
    uses,
    everythingWorks,
    queuePrefix: namespace.queuePrefix,
    /** Connections that were ever opened by the gateway. */
    connections: () => connections,
    keys: () => listedKeys(redis, namespace.queuePrefix, names),
    async close(): Promise<void> {
      await system.close()
      await proxy.close()
      await mails.stop()
    },
  }
}
