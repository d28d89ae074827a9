// Accounts whose old system hashed passwords as they were typed: everyone gets in, and after the first login by either form.
import { pbkdf2Sync } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { accountWithHash } from '../account.ts'
import { assertProblem, changePassword, expect, login } from '../client.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
afterAll(() => system.close())
const { url } = await system.gateway()

/** As Django hashes: the bytes as they were typed. */
const django = (typed: string) =>
  `pbkdf2_sha256$1000$seasalt$${pbkdf2Sync(typed, 'seasalt', 1_000, 32, 'sha256').toString('base64')}`
const today = /^\$argon2id\$v=19\$m=1024,t=1,p=1\$/
const hashOf = async (email: string) =>
  (await system.database.user.findUniqueOrThrow({ where: { email } })).passwordHash

for (const typed of ['Passwort² ist lang', '10\u00a0% von ½', 'ｐａｓｓＷＯＲＤ１２', 'cafe\u0301 zu zweit']) {
  test(`${JSON.stringify(typed)} logs in, again, and in its normal form`, async () => {
    const credentials = await accountWithHash(system.database, django(typed), typed)
    assertProblem(await login(url, { ...credentials, password: `${typed}.` }), 401, 'invalid_credentials')
    expect(200, await login(url, credentials))
    await until(async () => today.test(await hashOf(credentials.email)), { what: "a hash of today's policy" })
    expect(200, await login(url, credentials))
    expect(200, await login(url, { ...credentials, password: typed.normalize('NFKC') }))
  })
}

test('the password is changed by its old form as well', async () => {
  const typed = 'Passwort² ist alt'
  const credentials = await accountWithHash(system.database, django(typed), typed)
  const { accessToken } = expect(200, await login(url, credentials))
  const passwords = { currentPassword: typed, newPassword: 'a new pass phrase²' }
  expect(204, await changePassword(url, accessToken, passwords))
  expect(200, await login(url, { ...credentials, password: passwords.newPassword }))
})

test('an address that nobody has is refused in either form', async () => {
  const credentials = { email: 'nobody@example.test', password: 'Passwort² ist lang' }
  assertProblem(await login(url, credentials), 401, 'invalid_credentials')
})
