// Accounts that an operator disables: their sessions end, no new one opens, a login is told
// nothing, and the audit knows.
import assert from 'node:assert/strict'
import { createApiClient } from '@spillway/infra/rig/api-client'
import { createNamespace } from '@spillway/infra/rig/namespace'
import { openSpillway } from '@spillway/infra/rig/spillway'
import { connectDatabase } from '@spillway/prisma'
import { test } from 'vitest'
import { describeAccount, setDisabled } from '../../src/stored-accounts.ts'

test('a disabled account is let in nowhere, as if the password were wrong, until it is enabled', async (t) => {
  const namespace = await createNamespace()
  const env = { ARGON2_MEMORY_KIB: '1024', ARGON2_TIME: '1' }
  const spillway = openSpillway({ ...namespace, env, workerEnv: { WORKER_CONCURRENCY: '1' } })
  const database = connectDatabase({ url: namespace.databaseUrl, poolSize: 1 })
  t.onTestFinished(async () => {
    await database.$disconnect()
    await spillway.close()
    await namespace.close()
  })
  await spillway.worker()
  const { url } = await spillway.gateway()
  const api = createApiClient(url)
  t.onTestFinished(api.close)
  const credentials = { email: 'ada@example.test', password: 'a pass phrase of Ada' }
  assert.equal((await api.register(credentials)).status, 201)
  const { body: session } = await api.login(credentials)
  const ticket = await api.login(credentials, { headers: { prefer: 'respond-async' } })
  assert.equal(ticket.status, 202)
  const wrong = await api.login({ ...credentials, password: 'not the one' })

  assert.equal(await setDisabled(database, 'ADA@example.test', true), true)
  assert.equal(await setDisabled(database, credentials.email, true), false)
  const refused = await api.login(credentials)
  assert.deepEqual([refused.status, refused.body.code], [wrong.status, wrong.body.code])
  assert.equal((await api.redeem(ticket.body.ticket)).status, 401)
  assert.equal((await api.refresh(session.refreshToken)).status, 401)
  const me = await api.get('/v1/me', { headers: { authorization: `Bearer ${session.accessToken}` } })
  assert.equal(me.status, 401)
  const lines = await describeAccount(database, credentials.email)
  assert.match(lines.join('\n'), /^disabled +\d{4}-.*\nhash +argon2id, m=1024,t=1,p=1\nsessions +0$/m)

  assert.equal(await setDisabled(database, credentials.email, false), true)
  assert.equal((await api.login(credentials)).status, 200)
  const events: { event: string }[] =
    await database.$queryRaw`SELECT event FROM audit_events WHERE event LIKE '%able_account' ORDER BY id`
  assert.deepEqual(events, [{ event: 'disable_account' }, { event: 'enable_account' }])
  await assert.rejects(setDisabled(database, 'nobody@example.test', true), /^UserError: There is no account/)
  await assert.rejects(setDisabled(database, 'nobody', true), /is no e-mail address/)
})
