// Stored hashes of other algorithms and costs: which a login replaces, and which are kept.
import assert from 'node:assert/strict'
import { pbkdf2Sync } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { accountWithHash } from '../account.ts'
import { type Answer, assertProblem, expect, respondAsync } from '../client.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const { warmWorker: worker } = system
const { api } = await system.gateway()

const password = 'an older pass phrase'
const today = /^\$argon2id\$v=19\$m=1024,t=1,p=1\$/
const bcrypt = '$2b$04$xFYjlT7J7Bs3C8geRmuuQ.IwCyI7Rc4ls8BRgTKoRoUHIY9wm0xbm'
const strongerArgon2 =
  '$argon2id$v=19$m=2048,t=3,p=1$orImcuF946QX6CsSWKeRsA$Ph40GAXisbZYu1EgJoo4/0o/cCVMYq28K9XiIShL9Gg'

const storedOf = ({ email }: { email: string }) => system.database.user.findUniqueOrThrow({ where: { email } })

/** The account once it has a hash of today: that comes after the answer. */
async function upgraded(credentials: { email: string }) {
  return await until(
    async () => {
      const account = await storedOf(credentials)
      return today.test(account.passwordHash) ? account : undefined
    },
    { what: "a hash of today's policy" },
  )
}

test("an account with a hash of bcrypt leaves with today's, still the same account and password", async () => {
  const credentials = await accountWithHash(system.database, bcrypt, password)
  const before = await storedOf(credentials)
  assertProblem(await api.login({ ...credentials, password: 'not the one' }), 401, 'invalid_credentials')
  assert.equal((await storedOf(credentials)).passwordHash, bcrypt)

  const { accessToken } = expect(200, await api.login(credentials))
  const after = await upgraded(credentials)
  assert.equal(after.credentialVersion, before.credentialVersion)
  expect(200, await api.me(accessToken))

  expect(200, await api.login(credentials))
  assert.equal((await storedOf(credentials)).passwordHash, after.passwordHash)
})

test('a login by ticket upgrades as well, but never over a password that was changed meanwhile', async () => {
  const credentials = await accountWithHash(system.database, bcrypt, password)
  const { ticket } = expect(202, await api.login(credentials, respondAsync))
  expect(200, await api.redeem(ticket))
  await upgraded(credentials)

  const changed = await accountWithHash(system.database, bcrypt, password)
  const stale = expect(202, await api.login(changed, respondAsync))
  await system.database.user.update({
    where: { email: changed.email },
    data: { passwordHash: strongerArgon2, credentialVersion: { increment: 1 } },
  })
  assertProblem(await api.redeem(stale.ticket), 401, 'invalid_credentials')
  assert.equal((await storedOf(changed)).passwordHash, strongerArgon2)
})

const notUnderstood = ['5f4dcc3b5aa765d61d8327deb882cf99', '$argon2id$v=19$m=9999999,t=1,p=1$c2FsdHNhbHQ$aGFzaA', '']

test('a stored hash that nothing here understands is answered as a wrong password, at once and by ticket', async () => {
  const known = await accountWithHash(system.database, strongerArgon2, password)
  const wrong = await api.login({ ...known, password: 'not the one' })
  for (const stored of notUnderstood) {
    const credentials = await accountWithHash(system.database, stored, password)
    assertSame(await api.login(credentials), wrong)
    const { ticket } = expect(202, await api.login(credentials, respondAsync))
    assertSame(await api.redeem(ticket), wrong)
    assertProblem(await api.redeem(ticket), 409, 'ticket_used')
    assert.equal((await storedOf(credentials)).passwordHash, stored)
  }
})

test('gateway and worker count it, and the log of the worker leads from the job to it', async () => {
  const { api, opsUrl } = await system.gateway()
  const credentials = await accountWithHash(system.database, 'scrypt:16384:8:1', password)
  expect(401, await api.login(credentials))
  await until(async () => /^spillway_refused_total{reason="unsupported_hash"} 1$/m.test(await metricsOf(opsUrl)))
  assert.match(await metricsOf(opsUrl), /^spillway_refused_total{reason="wrong_password"} 0$/m)
  await until(async () =>
    /^spillway_jobs_total{job="verify",outcome="unsupported_hash"} [1-9]/m.test(await metricsOf(worker.opsUrl)),
  )
  const { jobId } = await worker.waitForLog(({ outcome }) => outcome === 'unsupported_hash')
  await worker.waitForLog((line) => line.jobId === jobId && line.msg === 'job refused')
})

const metricsOf = async (opsUrl: string) => await (await fetch(`${opsUrl}/metrics`)).text()

/** Checks that nothing tells these answers apart, but the time of day. */
function assertSame(answer: Answer, expected: Answer): void {
  assertProblem(answer, expected.status, expected.body.code)
  assert.deepEqual(answer.body, expected.body)
  const headersOf = ({ headers }: Answer) => [...headers].filter(([name]) => !['date', 'x-request-id'].includes(name))
  assert.deepEqual(headersOf(answer), headersOf(expected))
}

// Old systems that hashed passwords as typed: all get in, later by either form.

/** As Django hashes: the bytes as they were typed. */
const djangoOf = (typed: string) =>
  `pbkdf2_sha256$1000$seasalt$${pbkdf2Sync(typed, 'seasalt', 1_000, 32, 'sha256').toString('base64')}`

test('a password whose old system hashed it as typed logs in, again, and in its normal form', async () => {
  const typed = '10\u00a0% von ½ Passwort²'
  const credentials = await accountWithHash(system.database, djangoOf(typed), typed)
  assertProblem(await api.login({ ...credentials, password: `${typed}.` }), 401, 'invalid_credentials')
  expect(200, await api.login(credentials))
  await upgraded(credentials)
  expect(200, await api.login(credentials))
  expect(200, await api.login({ ...credentials, password: typed.normalize('NFKC') }))
})

test('the password is changed by its old form as well', async () => {
  const typed = 'Passwort² ist alt'
  const credentials = await accountWithHash(system.database, djangoOf(typed), typed)
  const { accessToken } = expect(200, await api.login(credentials))
  const newPassword = 'a new pass phrase²'
  expect(204, await api.changePassword(accessToken, typed, newPassword))
  expect(200, await api.login({ ...credentials, password: newPassword }))
})
