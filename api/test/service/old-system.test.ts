// Accounts without a hash here: the old system is asked at their first login, and nobody else is let in by it.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { ASK_OLD_SYSTEM } from '@spillway/client/protocol/stored-hash'
import { readRawLoad } from '@spillway/client/queue/capacity'
import { until } from '@spillway/infra/rig'
import { afterAll, test } from 'vitest'
import { accountWithHash } from '../account.ts'
import { type Answer, assertProblem, expect, login, redeem, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

/** The accounts of the old system, and whom it was asked about. */
const old = new Map<string, string>()
const asked: string[] = []
let answer: 'honest' | 'down' | 'late' = 'honest'
/** Answers that are held back. */
const late: (() => void)[] = []
const server = createServer(async (request, response) => {
  const { email, password } = JSON.parse(await text(request))
  asked.push(email)
  if (answer === 'down') response.destroy()
  else if (answer === 'late') late.push(() => response.end(JSON.stringify({ verified: old.get(email) === password })))
  else response.end(JSON.stringify({ verified: old.get(email) === password }))
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const { port } = server.address() as AddressInfo

const system = await openSystem()
afterAll(async () => {
  await system.close()
  server.closeAllConnections()
  server.close()
})
await system.worker({
  LEGACY_VERIFY_URL: `http://127.0.0.1:${port}/`,
  LEGACY_VERIFY_KEY: Buffer.alloc(32, 7).toString('base64'),
  ...{ LEGACY_VERIFY_CONCURRENCY: '2', LEGACY_VERIFY_TIMEOUT_MS: '30000' },
})
const { url } = await system.gateway({ LEGACY_VERIFY: 'true' })

function oldAccount() {
  const credentials = { email: `${randomUUID()}@example.test`, password: 'Passwort² von früher' }
  old.set(credentials.email, credentials.password)
  return credentials
}
const stored = (email: string) => system.database.user.findUnique({ where: { email } })
const today = /^\$argon2id\$v=19\$m=1024,t=1,p=1\$/
let readings = 0
const load = () => readRawLoad(system.redis, system.namespace.queuePrefix, ++readings)
const DJANGO_HASH = 'pbkdf2_sha256$1000$seasalt2seasalt2$+ELe0Csg0iuIH29hdppkPi6KBZavqy7bDOwuFKIFIZA='
const DJANGO_PASSWORD = 'an older pass phrase'
const wait = (seconds: number) => ({ headers: { prefer: `wait=${seconds}` } })
const same = ({ status, body }: Answer) => [status, body.code]

test('an address that is unknown here gets an account by its first login, and the old system is asked no more', async () => {
  const credentials = oldAccount()
  assertProblem(await login(url, { ...credentials, password: 'not the one' }), 401, 'invalid_credentials')
  assert.equal(await stored(credentials.email), null)
  expect(200, await login(url, credentials))
  assert.match((await stored(credentials.email))?.passwordHash ?? '', today)
  const before = asked.length
  expect(200, await login(url, credentials))
  assertProblem(await login(url, { ...credentials, password: 'not the one' }), 401, 'invalid_credentials')
  assert.equal(asked.length, before)
})

test('an account that came without a hash is completed, also by ticket, and keeps its id', async () => {
  const credentials = oldAccount()
  await accountWithHash(system.database, ASK_OLD_SYSTEM, credentials.password)
  const { email } = await accountWithHash(system.database, ASK_OLD_SYSTEM, credentials.password)
  old.set(email, credentials.password)
  const before = await stored(email)
  const { ticket } = expect(202, await login(url, { email, password: credentials.password }, respondAsync))
  expect(200, await redeem(url, ticket))
  const after = await stored(email)
  assert.equal(after?.id, before?.id)
  assert.match(after?.passwordHash ?? '', today)
})

test('a disabled account is not asked about, and is told what a wrong password is told', async () => {
  const credentials = oldAccount()
  const { email } = await accountWithHash(system.database, ASK_OLD_SYSTEM, credentials.password)
  old.set(email, credentials.password)
  await system.database.user.update({ where: { email }, data: { disabledAt: new Date() } })
  const wrong = await login(url, { email: `${randomUUID()}@example.test`, password: 'not the one' })
  const before = asked.length
  assert.deepEqual(same(await login(url, { email, password: credentials.password })), same(wrong))
  assert.equal(asked.length, before)
})

test('an account with a hash of its own is verified by that alone, whatever the old system would say', async () => {
  const { email } = await accountWithHash(system.database, DJANGO_HASH, DJANGO_PASSWORD)
  old.set(email, 'the old one')
  assertProblem(await login(url, { email, password: 'the old one' }), 401, 'invalid_credentials')
  expect(200, await login(url, { email, password: DJANGO_PASSWORD }))
  assert.ok(!asked.includes(email))
})

test('while the old system answers nobody, others log in beside its questions, and its accounts when it answers', async () => {
  const credentials = Array.from({ length: 6 }, oldAccount)
  const { email } = await accountWithHash(system.database, DJANGO_HASH, DJANGO_PASSWORD)
  answer = 'late'
  const logins = credentials.map((one) => login(url, one, wait(20)))
  // With one hashing thread: as many as there are places, each of which would hold it.
  await until(() => late.length === 2, { what: 'two questions' })
  expect(200, await login(url, { email, password: DJANGO_PASSWORD }))
  await until(async () => Object.values((await load()).capacity).every((entry) => JSON.parse(entry).asking === 6), {
    what: 'a capacity that knows of six',
  })
  assert.equal(late.length, 2)
  answer = 'honest'
  for (const release of late.splice(0)) release()
  for (const answered of await Promise.all(logins)) expect(200, answered)
})

test('a ticket of an account that the old system gave no verdict on stays pending until it does', async () => {
  const credentials = oldAccount()
  answer = 'down'
  const { ticket } = expect(202, await login(url, credentials, respondAsync))
  for (let n = 0; n < 2; n++) {
    const pending = await redeem(url, ticket)
    expect(202, pending)
    assert.equal(pending.headers.get('retry-after'), '5')
  }
  assert.equal(asked.filter((who) => who === credentials.email).length, 2)
  answer = 'honest'
  expect(200, await redeem(url, ticket))
})

test('while the old system is down all others log in, its accounts are told when to come back, and nothing counts', async () => {
  const { url } = await system.gateway({ LEGACY_VERIFY: 'true', LIMIT_PER_ADDRESS: '6', LIMIT_PER_ACCOUNT: '0' })
  const credentials = oldAccount()
  answer = 'down'
  for (let n = 0; n < 20; n++) {
    const refused = await login(url, n % 2 === 0 ? credentials : oldAccount())
    assertProblem(refused, 503, 'unavailable')
    assert.equal(refused.headers.get('retry-after'), '5')
  }
  const { email } = await accountWithHash(system.database, DJANGO_HASH, DJANGO_PASSWORD)
  assertProblem(await login(url, { email, password: 'not the one' }), 401, 'invalid_credentials')
  expect(200, await login(url, { email, password: DJANGO_PASSWORD }))
  assert.equal(await stored(credentials.email), null)
  // Nobody waits for the jobs of refused logins.
  const { absent, active, waiting } = await load()
  assert.deepEqual({ absent, active, waiting }, { absent: 0, active: 0, waiting: 0 })
})
