// Accounts without a hash here: the old system is asked at their first login, and nobody else is let in by it.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { ASK_OLD_SYSTEM } from '@spillway/client/protocol/stored-hash'
import { afterAll, test } from 'vitest'
import { accountWithHash } from '../account.ts'
import { type Answer, assertProblem, expect, login, redeem, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

/** The accounts of the old system, and whom it was asked about. */
const old = new Map<string, string>()
const asked: string[] = []
let answer: 'honest' | 'down' = 'honest'
const server = createServer(async (request, response) => {
  const { email, password } = JSON.parse(await text(request))
  asked.push(email)
  if (answer === 'down') response.destroy()
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
})
const { url } = await system.gateway({ LEGACY_VERIFY: 'true' })

function oldAccount() {
  const credentials = { email: `${randomUUID()}@example.test`, password: 'Passwort² von früher' }
  old.set(credentials.email, credentials.password)
  return credentials
}
const stored = (email: string) => system.database.user.findUnique({ where: { email } })
const today = /^\$argon2id\$v=19\$m=1024,t=1,p=1\$/
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
  const hash = 'pbkdf2_sha256$1000$seasalt2seasalt2$+ELe0Csg0iuIH29hdppkPi6KBZavqy7bDOwuFKIFIZA='
  const { email } = await accountWithHash(system.database, hash, 'an older pass phrase')
  old.set(email, 'the old one')
  assertProblem(await login(url, { email, password: 'the old one' }), 401, 'invalid_credentials')
  expect(200, await login(url, { email, password: 'an older pass phrase' }))
  assert.ok(!asked.includes(email))
})

test('while the old system is down all others log in, and its accounts are told what a wrong password is told', async () => {
  const credentials = oldAccount()
  answer = 'down'
  for (let n = 0; n < 7; n++) assertProblem(await login(url, credentials), 401, 'invalid_credentials')
  const { email } = await accountWithHash(
    system.database,
    'pbkdf2_sha256$1000$seasalt2seasalt2$+ELe0Csg0iuIH29hdppkPi6KBZavqy7bDOwuFKIFIZA=',
    'an older pass phrase',
  )
  expect(200, await login(url, { email, password: 'an older pass phrase' }))
  // Five failures open the circuit.
  assert.equal(asked.filter((who) => who === credentials.email).length, 5)
  assert.equal(await stored(credentials.email), null)
})
