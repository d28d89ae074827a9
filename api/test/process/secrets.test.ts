// Every flow through real processes with full logs; afterwards no secret is anywhere else.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@spillway/infra/processes/until'
import { connectRedis } from '@spillway/queue/client'
import { afterAll, test } from 'vitest'
import { accountWithHash } from '../account.ts'
import { type Body, expect, newCredentials, respondAsync } from '../client.ts'
import { watchQueue } from '../queue.ts'
import { readKeyspace, Secrets } from '../secret-search.ts'
import { openSystem, whileFrozen } from '../system.ts'

const system = await openSystem()
const replies = connectRedis(system.namespace.redisUrl, 'consumer')
afterAll(() => replies.disconnect())
const published: string[] = []
replies.on('pmessage', (_pattern: string, _channel: string, message: string) => published.push(message))
await replies.psubscribe(`${system.namespace.queuePrefix}:*`)

const worker = await system.worker({ LOG_LEVEL: 'trace' })
const gateway = await system.gatewayProcess({ LOG_LEVEL: 'trace' })
const { api: here } = gateway
const { api: there } = await system.gateway()
const secrets = new Secrets()
await runEveryFlow()

test('logs hold no secret', async () => {
  // Lines are written later, several at a time: the last request's and job's are waited for.
  expect(404, await here.call('GET', '/nothing'))
  await gateway.waitForLog(({ msg, status }) => msg === 'request' && status === 404)
  const lastJob = gateway.logs.findLast(({ jobId, status }) => jobId !== undefined && status === 200)?.jobId
  await worker.waitForLog(({ msg, jobId }) => msg === 'job answered' && jobId === lastJob)
  for (const process of [worker, gateway]) {
    assert.ok(process.logs.length > 10)
    assert.deepEqual(secrets.foundIn(process.output()), [])
  }
})

test('Redis holds no secret, and neither do the messages that passed through it', async () => {
  await until(() => published.length > 10)
  assert.deepEqual(secrets.foundIn(published.join('\n')), [])
  assert.deepEqual(secrets.foundIn(await readKeyspace(system.redis)), [])
})

test('the append-only file, with everything that was ever written, holds no secret', async (t) => {
  const file = await readAppendOnlyFile()
  if (file === undefined) return t.skip('this Redis keeps its file on another machine')
  assert.match(file, new RegExp(`${system.namespace.queuePrefix}:result:`))
  assert.deepEqual(secrets.foundIn(file), [])
})

test('PostgreSQL holds no password, token or ticket', async () => {
  const tables = await Promise.all([
    system.database.$queryRaw`SELECT * FROM users`,
    system.database.$queryRaw`SELECT * FROM sessions`,
    system.database.$queryRaw`
      SELECT encode(hash, 'escape') AS stored FROM sessions, unnest(ARRAY[token_hash, family_hash, previous_hash, salt]) AS hash`,
  ])
  const found = secrets.foundIn(JSON.stringify(tables))
  const others = found.filter((name) => name !== 'hash' && name !== 'address')
  assert.deepEqual(others, [])
  assert.ok(found.includes('hash'))
})

test('a secret that is planted is found, whatever its form and wherever it is', async () => {
  const planted = new Secrets()
  const secret = 'a planted pass phrase'
  planted.add('planted', secret)
  const forms = [
    secret,
    JSON.stringify({ password: secret }),
    Buffer.from(secret).toString('hex'),
    Buffer.from(`{"password":"${secret}"}`).toString('base64'),
    Buffer.from(`x{"password":"${secret}"}`).toString('base64url'),
    Buffer.from(`xy{"password":"${secret}"}`).toString('base64'),
  ]
  for (const form of forms) assert.deepEqual(planted.foundIn(`before ${form} after`), ['planted'], form)

  const key = (type: string) => `${system.namespace.queuePrefix}:planted:${type}`
  const plant: Record<string, () => Promise<unknown>> = {
    string: () => system.redis.set(key('string'), secret),
    hash: () => system.redis.hset(key('hash'), 'field', secret),
    list: () => system.redis.lpush(key('list'), secret),
    set: () => system.redis.sadd(key('set'), secret),
    zset: () => system.redis.zadd(key('zset'), 1, secret),
    stream: () => system.redis.xadd(key('stream'), '*', 'field', secret),
  }
  for (const [type, put] of Object.entries(plant)) {
    await put()
    assert.deepEqual(planted.foundIn(await readKeyspace(system.redis)), ['planted'], type)
    await system.redis.del(key(type))
    assert.deepEqual(planted.foundIn(await readKeyspace(system.redis)), [])
  }
  const file = await readAppendOnlyFile()
  if (file !== undefined) assert.deepEqual(planted.foundIn(file), ['planted'])
})

/** Registers, logs in, fails, waits, refreshes, changes and leaves in every way; notes secrets */
async function runEveryFlow(): Promise<void> {
  const credentials = noted(newCredentials())
  expect(201, await here.register(credentials))
  expect(409, await there.register(credentials))
  const ticketed = noted(newCredentials())
  expect(201, await there.redeem(notedTicket(expect(202, await here.register(ticketed, respondAsync)))))

  const old = noted({ email: newCredentials().email, password: 'an older pass phrase' })
  const bcrypt = '$2b$04$xFYjlT7J7Bs3C8geRmuuQ.IwCyI7Rc4ls8BRgTKoRoUHIY9wm0xbm'
  const { email } = await accountWithHash(system.database, bcrypt, old.password)
  notedTokens(expect(200, await here.login({ ...old, email })))

  const wrong = noted({ ...newCredentials(), email: credentials.email })
  expect(401, await here.login(wrong))
  expect(401, await here.login(noted(newCredentials())))
  const unwell = await accountWithHash(system.database, 'not-a-hash-of-any-known-kind')
  expect(401, await here.login(noted(unwell)))

  const tokens = notedTokens(expect(200, await here.login(credentials)))
  const byTicket = notedTicket(expect(202, await here.login(credentials, respondAsync)))
  notedTokens(expect(200, await there.redeem(byTicket)))
  expect(409, await here.redeem(byTicket))
  expect(400, await here.redeem(`${byTicket}x`))
  expect(200, await here.me(tokens.accessToken))
  expect(401, await here.me(`${tokens.accessToken}x`))

  const next = noted(newCredentials()).password
  expect(204, await here.changePassword(tokens.accessToken, credentials.password, next))
  const last = noted(newCredentials()).password
  const change = await here.changePassword(tokens.accessToken, next, last, respondAsync)
  expect(204, await there.redeem(notedTicket(expect(202, change))))

  const refreshed = notedTokens(expect(200, await there.refresh(tokens.refreshToken)))
  const again = notedTokens(expect(200, await here.refresh(refreshed.refreshToken)))
  expect(401, await here.refresh(tokens.refreshToken))
  expect(204, await there.logout(again.refreshToken))

  const { email: _, ...rest } = noted(newCredentials())
  expect(422, await here.call('POST', '/v1/login', { body: { ...rest, extra: rest.password } }))
  expect(404, await here.call('POST', `/v1/unknown?password=${encodeURIComponent(rest.password)}`, { body: rest }))
  expect(400, await here.call('GET', `/v1/%zz?password=${encodeURIComponent(rest.password)}`))

  await leaveWhileWaiting()
  for (const { passwordHash } of await system.database.user.findMany()) {
    secrets.add('hash', passwordHash)
    secrets.add('hash', passwordHash.split('$').at(-1) ?? '')
  }
}

/** A job that lies in the queue, and is taken back from there. */
async function leaveWhileWaiting(): Promise<void> {
  await whileFrozen(worker, async () => {
    const queue = watchQueue(system)
    const client = new AbortController()
    const left = here.register(noted(newCredentials()), { signal: client.signal })
    const stays = there.register(noted(newCredentials()), { headers: { prefer: 'wait=1' } })
    await queue.settled(2, 0)
    assert.deepEqual(secrets.foundIn(await readKeyspace(system.redis)), [])
    client.abort()
    await assert.rejects(left)
    notedTicket(expect(202, await stays))
  })
}

function noted(credentials: { email: string; password: string }) {
  secrets.add('address', credentials.email)
  secrets.add('password', credentials.password)
  return credentials
}

function notedTokens(tokens: Body): Body {
  secrets.add('refresh token', tokens.refreshToken)
  secrets.add('access token', tokens.accessToken)
  secrets.add('access token', tokens.accessToken.split('.').at(-1) ?? '')
  return tokens
}

/** The job's id at the front of a ticket is no secret. */
function notedTicket({ ticket }: Body): string {
  secrets.add('ticket', ticket.split('.').at(-1) ?? '')
  return ticket
}

/** What Redis has written to its disk so far; undefined when that is another machine's. */
async function readAppendOnlyFile(): Promise<string | undefined> {
  const setting = async (name: string) => {
    const answer = await system.redis.call('CONFIG', 'GET', name)
    return Array.isArray(answer) ? String(answer[1]) : ''
  }
  const folder = join(await setting('dir'), await setting('appenddirname'))
  if (!existsSync(folder)) return undefined
  const files = await readdir(folder)
  assert.ok(files.some((file) => file.endsWith('.incr.aof')))
  return (await Promise.all(files.map((file) => readFile(join(folder, file), 'latin1')))).join('\n')
}
