// What fails at its last step has changed nothing, and what is refused has cost no hash.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { assertProblem, expect, newCredentials } from '../client.ts'
import { watchQueue } from '../queue.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const { api, opsUrl } = await system.gateway()
const queue = watchQueue(system)

test('a change of password whose commit fails ends no session', async () => {
  const { account: credentials, ...mine } = await api.signedIn()
  const other = expect(200, await api.login(credentials))
  await system.database.$executeRaw`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$no commit$$; END'`
  await system.database.$executeRaw`
    CREATE CONSTRAINT TRIGGER uncommitted AFTER UPDATE ON users DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION refuse()`
  assertProblem(await api.changePassword(mine.accessToken, credentials.password), 500, 'internal_error')
  await system.database.$executeRaw`DROP TRIGGER uncommitted ON users`
  expect(200, await api.me(other.accessToken))
  expect(200, await api.refresh(other.refreshToken))
  expect(200, await api.login(credentials))
})

test('a request that is refused before its job costs no hash: a taken address, a password too long, a change without a session', async () => {
  const { email } = await api.newAccount()
  const { password } = newCredentials()
  const jobs = (await queue.added()).length
  assertProblem(await api.register({ email: ` ${email.toUpperCase()} `, password }), 409, 'email_taken')
  const long = 'x'.repeat(1_025)
  assertProblem(await api.register({ ...newCredentials(), password: long }), 422, 'invalid_request')
  // The same for every address, known or not.
  for (const known of [email, newCredentials().email]) {
    assertProblem(await api.login({ email: known, password: long }), 422, 'invalid_request')
  }
  assertProblem(await api.changePassword('no token', password, password), 401, 'invalid_token')
  assert.equal((await queue.added()).length, jobs)
})

test('the access token of a session that has expired is refused, though its own time is not over', async () => {
  const { accessToken, refreshToken } = await api.signedIn()
  const { id } = expect(200, await api.me(accessToken))
  const expiresAt = new Date(Date.now() - 1_000)
  await system.database.session.updateMany({ where: { userId: id }, data: { expiresAt } })
  assertProblem(await api.me(accessToken), 401, 'invalid_token')
  const jobs = (await queue.added()).length
  assertProblem(await api.changePassword(accessToken, 'a pass phrase'), 401, 'invalid_token')
  assertProblem(await api.refresh(refreshToken), 401, 'invalid_refresh_token')
  assert.equal((await queue.added()).length, jobs)
})

test('made-up paths, methods and names are in no label', async () => {
  const madeUp = 'made-up-by-a-stranger'
  for (const path of [`/${madeUp}`, `/v1/${madeUp}`, `/v1/me?${madeUp}=1`, `/docs/${madeUp}`, `/v1/login/${madeUp}`]) {
    for (const method of ['GET', 'POST', 'DELETE', 'PROPFIND']) await api.call(method, path)
  }
  await api.login({ email: `${madeUp}@example.test`, password: madeUp }, { headers: { prefer: `wait=1; ${madeUp}` } })
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
  assert.doesNotMatch(metrics, new RegExp(madeUp))
  assert.match(
    metrics,
    /^spillway_http_requests_total\{method="GET",route="none",status="404",outcome="not_found"\} \d+$/m,
  )
})
