// Accounts without a hash: the old system is asked at the first login, and lets nobody else in.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { until } from '@spillway/infra/processes/until'
import { readRawLoad } from '@spillway/queue/jobs/capacity'
import { ASK_OLD_SYSTEM } from '@spillway/queue/wire/stored-hash'
import { afterAll, test } from 'vitest'
import { accountWithHash } from '../account.ts'
import { type Answer, assertProblem, expect, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

/** The accounts of the old system, and whom it was asked about. */
const old = new Map<string, string>()
const asked: string[] = []
let answer: 'honest' | 'down' | 'late' = 'honest'
/** Questions that are asked at a time. */
const PLACES = 2
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

afterAll(() => {
  server.closeAllConnections()
  server.close()
})
const system = await openSystem()
await system.worker({
  LEGACY_VERIFY_URL: `http://127.0.0.1:${port}/`,
  LEGACY_VERIFY_KEY: Buffer.alloc(32, 7).toString('base64'),
  ...{ LEGACY_VERIFY_CONCURRENCY: String(PLACES), LEGACY_VERIFY_TIMEOUT_MS: '30000' },
})
const { api } = await system.gateway({ LEGACY_VERIFY: 'true' })

function oldAccount() {
  const credentials = { email: `${randomUUID()}@example.test`, password: 'Passwort² von früher' }
  old.set(credentials.email, credentials.password)
  return credentials
}
/** An account of the old system that was imported without its hash. */
async function importedAccount() {
  const credentials = await accountWithHash(system.database, ASK_OLD_SYSTEM, 'Passwort² von früher')
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

/** So many questions at once; the old system answers them after what happens meanwhile. */
async function askedAtOnce(count: number, ask: (n: number) => Promise<Answer>, meanwhile?: () => Promise<unknown>) {
  answer = 'late'
  const answers = Array.from({ length: count }, (_, n) => ask(n))
  // With one hashing thread: as many as there are places, each of which would hold it.
  await until(() => late.length === Math.min(count, PLACES), { what: 'questions about each' })
  await meanwhile?.()
  assert.ok(late.length <= PLACES)
  answer = 'honest'
  for (const release of late.splice(0)) release()
  return await Promise.all(answers)
}

test('an address that is unknown here gets an account by its first login, and the old system is asked no more', async () => {
  const credentials = oldAccount()
  assertProblem(await api.login({ ...credentials, password: 'not the one' }), 401, 'invalid_credentials')
  assert.equal(await stored(credentials.email), null)
  expect(200, await api.login(credentials))
  assert.match((await stored(credentials.email))?.passwordHash ?? '', today)
  const before = asked.length
  expect(200, await api.login(credentials))
  assertProblem(await api.login({ ...credentials, password: 'not the one' }), 401, 'invalid_credentials')
  assert.equal(asked.length, before)
})

test('an account that came without a hash is completed, also by ticket, and keeps its id', async () => {
  const credentials = await importedAccount()
  const { email } = credentials
  const before = await stored(email)
  const { ticket } = expect(202, await api.login(credentials, respondAsync))
  expect(200, await api.redeem(ticket))
  const after = await stored(email)
  assert.equal(after?.id, before?.id)
  assert.match(after?.passwordHash ?? '', today)
})

test('a disabled account is not asked about, and is told what a wrong password is told', async () => {
  const credentials = await importedAccount()
  const { email } = credentials
  await system.database.user.update({ where: { email }, data: { disabledAt: new Date() } })
  const wrong = await api.login({ email: `${randomUUID()}@example.test`, password: 'not the one' })
  const before = asked.length
  assert.deepEqual(same(await api.login(credentials)), same(wrong))
  assert.equal(asked.length, before)
})

test('an account with a hash of its own is verified by that alone, whatever the old system would say', async () => {
  const { email } = await accountWithHash(system.database, DJANGO_HASH, DJANGO_PASSWORD)
  old.set(email, 'the old one')
  assertProblem(await api.login({ email, password: 'the old one' }), 401, 'invalid_credentials')
  expect(200, await api.login({ email, password: DJANGO_PASSWORD }))
  assert.ok(!asked.includes(email))
})

test('while the old system answers nobody, others log in beside its questions, and its accounts when it answers', async () => {
  const credentials = Array.from({ length: 6 }, oldAccount)
  const { email } = await accountWithHash(system.database, DJANGO_HASH, DJANGO_PASSWORD)
  const answers = await askedAtOnce(
    credentials.length,
    (n) => api.login(credentials[n] ?? assert.fail(), wait(20)),
    async () => {
      expect(200, await api.login({ email, password: DJANGO_PASSWORD }))
      await until(async () => Object.values((await load()).capacity).every((entry) => JSON.parse(entry).asking === 6), {
        what: 'a capacity that knows of six',
      })
    },
  )
  for (const answered of answers) expect(200, answered)
})

test('a ticket of an account that the old system gave no verdict on stays pending until it does', async () => {
  const credentials = oldAccount()
  answer = 'down'
  const { ticket } = expect(202, await api.login(credentials, respondAsync))
  for (let n = 0; n < 2; n++) {
    const pending = await api.redeem(ticket)
    expect(202, pending)
    assert.equal(pending.headers.get('retry-after'), '5')
  }
  // By each redemption, and by the first request where a worker took its job sooner.
  assert.ok(asked.filter((who) => who === credentials.email).length >= 2)
  answer = 'honest'
  expect(200, await api.redeem(ticket))
})

test('where addresses must be confirmed, the old system has confirmed those that it vouches for', async () => {
  const { api } = await system.gateway({
    ...{ LEGACY_VERIFY: 'true', LOGIN_NEEDS_CONFIRMATION: 'true' },
    ...{ SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'login@example.test' },
    ...{ MAIL_CONFIRM_URL: 'https://example.test#{token}', MAIL_RESET_URL: 'https://example.test#{token}' },
  })
  for (const credentials of [oldAccount(), await importedAccount()]) {
    assertProblem(await api.login({ ...credentials, password: 'not the one' }), 401, 'invalid_credentials')
    expect(200, await api.login(credentials))
    expect(200, await api.login(credentials))
    assert.ok((await stored(credentials.email))?.emailConfirmedAt)
  }
})

test('of two first logins at once one makes the account, and the other is verified by what was made', async () => {
  for (const credentials of [oldAccount(), await importedAccount()]) {
    const answers = await askedAtOnce(2, () => api.login(credentials, wait(20)))
    const statuses = answers.map(({ status }) => status)
    assert.deepEqual(statuses, [200, 200])
    const { id = '' } = (await stored(credentials.email)) ?? {}
    assert.equal(await system.database.session.count({ where: { userId: id } }), 2)
  }
})

test('a ticket whose account was made meanwhile is lost, and its client logs in', async () => {
  const credentials = oldAccount()
  const answers = await askedAtOnce(2, async () => {
    const { ticket } = expect(202, await api.login(credentials, respondAsync))
    return await api.redeem(ticket)
  })
  const [first, second] = answers.toSorted((one, other) => one.status - other.status)
  assert.equal(first?.status, 200)
  assert.ok(second)
  assertProblem(second, 410, 'ticket_lost')
  expect(200, await api.login(credentials))
})

test('an account that somebody else made meanwhile is not entered by what the old system said', async () => {
  const credentials = oldAccount()
  const { email, password } = credentials
  const id = randomUUID()
  const [answered = assert.fail()] = await askedAtOnce(
    1,
    () => api.login(credentials, wait(20)),
    async () => {
      await system.database.user.create({ data: { id, email, passwordHash: DJANGO_HASH } })
    },
  )
  assertProblem(answered, 401, 'invalid_credentials')
  assert.equal(await system.database.session.count({ where: { userId: id } }), 0)
  assertProblem(await api.login({ email, password }), 401, 'invalid_credentials')
})

test('nobody comes back by the old password of an address that had an account, whoever deleted or changed it', async () => {
  const { database } = system
  await until(async () => (await database.tombstoneKey.count()) === 1, { what: 'the key of tombstones' })
  const ends = {
    async deletes({ email, password }: { email: string; password: string }) {
      const { accessToken } = expect(200, await api.login({ email, password }))
      expect(204, await api.deleteAccount(accessToken, password))
    },
    operator: ({ email }: { email: string }) => database.$executeRaw`DELETE FROM users WHERE email = ${email}`,
    changes: ({ email }: { email: string }) =>
      database.user.update({ where: { email }, data: { email: `${randomUUID()}@example.test` } }),
  }
  for (const end of Object.values(ends)) {
    const credentials = oldAccount()
    expect(200, await api.login(credentials))
    const { ticket } = expect(202, await api.login(credentials, respondAsync))
    await end(credentials)
    const before = asked.length
    assertProblem(await api.login(credentials), 401, 'invalid_credentials')
    // The account that has another address now is entered by it.
    if (end !== ends.changes) assert.notEqual((await api.redeem(ticket)).status, 200)
    assert.equal(asked.length, before)
    assert.equal(await stored(credentials.email), null)
  }
  const digests = await database.tombstone.findMany()
  assert.ok(digests.length >= 3 && digests.every(({ digest }) => digest.length === 32))
  // Who registers it anew has an account of their own.
  const credentials = { ...oldAccount(), password: 'a new pass phrase' }
  await database.user.create({ data: { id: randomUUID(), email: credentials.email, passwordHash: DJANGO_HASH } })
  await database.user.delete({ where: { email: credentials.email } })
  expect(201, await api.register(credentials))
  expect(200, await api.login(credentials))
})

test('an account that is deleted while the old system is asked about it is not made again', async () => {
  const credentials = oldAccount()
  const { email } = credentials
  const [answered = assert.fail()] = await askedAtOnce(
    1,
    () => api.login(credentials, wait(20)),
    async () => {
      await system.database.user.create({ data: { id: randomUUID(), email, passwordHash: DJANGO_HASH } })
      await system.database.user.delete({ where: { email } })
    },
  )
  assertProblem(answered, 401, 'invalid_credentials')
  assert.equal(await stored(email), null)
})

test('while the old system is down all others log in, its accounts are told when to come back, and nothing counts', async () => {
  const { api } = await system.gateway({ LEGACY_VERIFY: 'true', LIMIT_PER_ADDRESS: '6', LIMIT_PER_ACCOUNT: '0' })
  const before = await load()
  const credentials = oldAccount()
  answer = 'down'
  for (let n = 0; n < 20; n++) {
    const refused = await api.login(n % 2 === 0 ? credentials : oldAccount())
    assertProblem(refused, 503, 'unavailable')
    assert.equal(refused.headers.get('retry-after'), '5')
  }
  const { email } = await accountWithHash(system.database, DJANGO_HASH, DJANGO_PASSWORD)
  assertProblem(await api.login({ email, password: 'not the one' }), 401, 'invalid_credentials')
  expect(200, await api.login({ email, password: DJANGO_PASSWORD }))
  assert.equal(await stored(credentials.email), null)
  // Nobody waits for the jobs of refused logins.
  const { absent, active, waiting } = await load()
  assert.deepEqual({ absent, active, waiting }, { absent: before.absent, active: 0, waiting: 0 })
})
