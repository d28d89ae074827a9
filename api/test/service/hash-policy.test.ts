// The policy of new hashes as it is configured, and when a new hash replaces the verified one.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { accountWithHash } from '../account.ts'
import { assertProblem, type Credentials, expect, newCredentials, respondAsync } from '../client.ts'
import { openSystem, type System } from '../system.ts'

const password = 'an older pass phrase'
const bcrypt = '$2b$04$xFYjlT7J7Bs3C8geRmuuQ.IwCyI7Rc4ls8BRgTKoRoUHIY9wm0xbm'
const argon2 = '$argon2id$v=19$m=2048,t=3,p=1$orImcuF946QX6CsSWKeRsA$Ph40GAXisbZYu1EgJoo4/0o/cCVMYq28K9XiIShL9Gg'
const tooLong = `${'x'.repeat(64)} pass phrase`

/** New hashes that take so long that an answer which waited for one would come after it. */
const DEAR = { HASH_ALGORITHM: 'argon2id', ARGON2_MEMORY_KIB: '65536', ARGON2_TIME: '8' }
const dear = await openSystem()
afterAll(() => dear.close())
await dear.worker(DEAR)
/** Logins are held as long as such a hash takes: the worker publishes its time as a job's. */
const PATIENT = { LOGIN_WAIT_MS: '50000' }
const { api } = await dear.gateway(PATIENT)
const isDear = /^\$argon2id\$v=19\$m=65536,t=8,p=1\$/

const ofBcrypt = await openSystem()
afterAll(() => ofBcrypt.close())
await ofBcrypt.worker({ HASH_ALGORITHM: 'bcrypt', BCRYPT_COST: '5' })

async function hashOf({ database }: System, { email }: { email: string }): Promise<string> {
  return (await database.user.findUniqueOrThrow({ where: { email } })).passwordHash
}

async function becomes(system: System, credentials: { email: string }, expected: RegExp): Promise<void> {
  await until(async () => expected.test(await hashOf(system, credentials)), { what: `a hash like ${expected}` })
}

/**
 * Logs in with a new account, and ends as soon as something was done while its hash was the old one.
 * Where this machine stands still, the new hash comes meanwhile.
 */
async function beforeNewHash(logIn: (account: Credentials) => Promise<unknown>): Promise<Credentials> {
  return await until(async () => {
    const account = await accountWithHash(dear.database, bcrypt, password)
    await logIn(account)
    return (await hashOf(dear, account)) === bcrypt ? account : undefined
  })
}

test('a login is answered before its new hash is made, at once and by ticket', async () => {
  const held = await beforeNewHash(async (account) => expect(200, await api.login(account)))
  await becomes(dear, held, isDear)

  const ticketed = await beforeNewHash(async (account) => {
    const { ticket } = expect(202, await api.login(account, respondAsync))
    expect(200, await api.redeem(ticket))
  })
  await becomes(dear, ticketed, isDear)
  expect(200, await api.login(ticketed))
})

test('a new hash replaces the verified one, and no other', async () => {
  const replaced = await accountWithHash(dear.database, bcrypt, password)
  expect(200, await api.login(replaced))
  await dear.database.user.update({ where: { email: replaced.email }, data: { passwordHash: argon2 } })
  // The worker makes one hash at a time: the first login's has come when this one has.
  const next = await accountWithHash(dear.database, bcrypt, password)
  expect(200, await api.login(next))
  await becomes(dear, next, isDear)
  assert.equal(await hashOf(dear, replaced), argon2)
})

test('a new hash that is lost leaves the account as it was, and the next login makes another', async () => {
  const credentials = await beforeNewHash(async (account) => {
    const gateway = await dear.gateway(PATIENT)
    expect(200, await gateway.api.login(account))
    await gateway.close()
  })
  expect(200, await api.login(credentials))
  await becomes(dear, credentials, isDear)
})

test('HASH_ALGORITHM=bcrypt: accounts get its hashes, of the cost that is set, and log in', async () => {
  const { api } = await ofBcrypt.gateway()
  const credentials = await api.newAccount()
  assert.match(await hashOf(ofBcrypt, credentials), /^\$2b\$05\$/)
  expect(200, await api.login(credentials))
  const cheaper = await accountWithHash(ofBcrypt.database, bcrypt, password)
  expect(200, await api.login(cheaper))
  await becomes(ofBcrypt, cheaper, /^\$2b\$05\$/)
})

test('HASH_ALGORITHM=bcrypt: a new password that it would cut is refused by name, and one that is longer logs in', async () => {
  const { api } = await ofBcrypt.gateway()
  const long = { ...newCredentials(), password: tooLong }
  const refused = await api.register(long)
  assertProblem(refused, 422, 'invalid_request')
  const [error] = refused.body.errors
  assert.deepEqual({ ...error, message: '' }, { field: 'password', code: 'password_too_long', message: '' })
  const { ticket } = expect(202, await api.register(long, respondAsync))
  assertProblem(await api.redeem(ticket), 422, 'invalid_request')

  const { account: credentials, accessToken } = await api.signedIn()
  const unchanged = await api.changePassword(accessToken, credentials.password, tooLong)
  assertProblem(unchanged, 422, 'invalid_request')
  assert.equal(unchanged.body.errors[0]?.field, 'newPassword')
  assertProblem(await api.login({ ...credentials, password: tooLong }), 401, 'invalid_credentials')
})

test('REHASH: always replaces stronger hashes as well, weaker keeps them, never keeps all', async () => {
  const [always, weaker, never] = await Promise.all([
    ofBcrypt.gateway({ REHASH: 'always' }),
    ofBcrypt.gateway({ REHASH: 'weaker' }),
    ofBcrypt.gateway({ REHASH: 'never' }),
  ])
  const kept = await accountWithHash(ofBcrypt.database, argon2, password)
  const weak = await accountWithHash(ofBcrypt.database, bcrypt, password)
  expect(200, await weaker.api.login(kept))
  expect(200, await never.api.login(kept))
  expect(200, await never.api.login(weak))
  // A hash that had been asked for would have been made by now, before these.
  const replaced = await accountWithHash(ofBcrypt.database, argon2, password)
  expect(200, await always.api.login(replaced))
  await becomes(ofBcrypt, replaced, /^\$2b\$05\$/)
  assert.equal(await hashOf(ofBcrypt, kept), argon2)
  assert.equal(await hashOf(ofBcrypt, weak), bcrypt)
})
