// POST /v1/me/delete: who may delete an account, that nothing of it is left, and that it happens once.
import assert from 'node:assert/strict'
import { afterAll, test } from 'vitest'
import {
  type Answer,
  assertProblem,
  type Call,
  call,
  changePassword,
  expect,
  login,
  logout,
  me,
  newAccount,
  patiently,
  redeem,
  refresh,
  register,
  respondAsync,
} from '../client.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
afterAll(() => system.close())
const [{ url: here }, { url: there }] = await Promise.all([system.gateway(), system.gateway()])

async function deleteAccount(url: string, token: string, password: string, options: Call = {}): Promise<Answer> {
  let answer = await call(url, 'POST', '/v1/me/delete', { ...options, token, body: { password } })
  while (answer.status === 202 && options.headers === undefined) answer = await redeem(url, answer.body.ticket)
  return answer
}

test('with the right password the account is deleted, and nothing of it is left anywhere in the database', async () => {
  const account = await newAccount(here)
  const phone = expect(200, await login(there, account))
  const { accessToken, refreshToken } = expect(200, await login(here, account))
  const { id } = expect(200, await me(here, accessToken))
  expect(200, await refresh(there, phone.refreshToken))
  assertProblem(await deleteAccount(here, accessToken, 'a guess'), 401, 'invalid_credentials')
  expect(204, await deleteAccount(here, accessToken, account.password))

  // The audit names accounts by their id, and outlives them.
  assert.deepEqual(await tablesWith([account.email]), [])
  assert.deepEqual(
    (await tablesWith([id])).filter((table) => table !== 'audit_events'),
    [],
  )
  assertProblem(await me(there, phone.accessToken), 401, 'invalid_token')
  assertProblem(await refresh(there, refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await login(there, account), 401, 'invalid_credentials')
  assertProblem(await deleteAccount(there, accessToken, account.password), 401, 'invalid_token')
  // The address is free again, for an account of its own.
  assert.notEqual(expect(201, await register(here, account)).id, id)
})

test('an account of another user is left alone', async () => {
  const [mine, other] = [await newAccount(here), await newAccount(here)]
  const { accessToken } = expect(200, await login(here, mine))
  assertProblem(await deleteAccount(here, accessToken, other.password), 401, 'invalid_credentials')
  expect(204, await deleteAccount(here, accessToken, mine.password))
  expect(200, await login(here, other))
})

test('a ticket deletes nothing once its session has ended or the password has changed', async () => {
  for (const end of ['logout', 'change'] as const) {
    const account = await newAccount(here)
    const { accessToken, refreshToken } = expect(200, await login(here, account))
    const { ticket } = expect(202, await deleteAccount(here, accessToken, account.password, respondAsync))
    const next = { currentPassword: account.password, newPassword: 'another pass phrase entirely' }
    if (end === 'logout') expect(204, await logout(there, refreshToken))
    else expect(204, await changePassword(there, accessToken, next))
    assert.equal((await settled(there, ticket)).status, 401)
    assert.equal(await system.database.user.count({ where: { email: account.email } }), 1)
  }
})

test('of a hundred deletions at once one succeeds, and all others are told that the session is gone', async () => {
  const account = await newAccount(here)
  const { accessToken } = expect(200, await login(here, account))
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) =>
      // A machine that is busy may have no free connection to the database.
      patiently(() => deleteAccount(n % 2 ? here : there, accessToken, account.password)),
    ),
  )
  const codes = answers.map(({ status, body }) => (status === 204 ? 'deleted' : body.code))
  assert.equal(codes.filter((code) => code === 'deleted').length, 1, codes.join())
  for (const code of codes) assert.ok(['deleted', 'invalid_token', 'invalid_credentials'].includes(code), codes.join())
})

/** The answer for a ticket, once it is there. */
async function settled(url: string, ticket: string): Promise<Answer> {
  const answer = await redeem(url, ticket)
  return answer.status === 202 ? settled(url, ticket) : answer
}

/** The tables in which any column of any row is one of these texts. */
async function tablesWith(texts: string[]): Promise<string[]> {
  const tables = await system.database.$queryRaw<{ name: string }[]>`
    SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()`
  assert.ok(tables.length >= 3)
  const found: string[] = []
  for (const { name } of tables) {
    const rows = await system.database.$queryRawUnsafe<{ row: string }[]>(`SELECT t::text AS row FROM "${name}" AS t`)
    if (rows.some(({ row }) => texts.some((text) => row.includes(text)))) found.push(name)
  }
  return found
}
