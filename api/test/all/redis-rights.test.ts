// A user of Redis with the documented rights does everything; without one, the log names it.
import assert from 'node:assert/strict'
import { startProcess } from '@spillway/infra/processes/node-process'
import { gatewayProgram } from '@spillway/infra/start/member'
import { test } from 'vitest'
import { asIs, assertProblem, Client, expect, fetchPatiently, newCredentials, respondAsync } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { openSystem } from '../system.ts'

/** As in worker/README.md. */
const ACL_RULE = '~{spillway}* &{spillway}* +@all -@admin -@dangerous +info'

const mails = await startMailServer()
const system = await openSystem()
const { redis, namespace } = system
const user = namespace.queuePrefix.replace(/[{}]/g, '')

/** Gives the user this rule alone, and a URL to connect as this user. */
async function allow(rule: string): Promise<string> {
  const rights = rule.replaceAll('{spillway}', namespace.queuePrefix).split(' ')
  await redis.call('ACL', 'SETUSER', user, 'reset', 'on', '>secret', ...rights)
  const url = new URL(namespace.redisUrl)
  url.username = user
  url.password = 'secret'
  return url.href
}

/** Redis's word for a command, key or channel that a user may not use. */
const NO_RIGHT = /NOPERM/

test('the rule is enough for logins, tickets, limits, mails, the board, the live page and workers', async () => {
  const REDIS_URL = await allow(ACL_RULE)
  await system.worker({ REDIS_URL })
  const gateway = await system.gatewayProcess({ ...mails.env, REDIS_URL, LOGIN_WAIT_MS: '8000' })
  const { account, refreshToken } = await gateway.api.signedIn()
  assert.equal((await gateway.api.login({ ...account, password: 'wrong pass phrase' })).status, 401)
  expect(202, await gateway.api.login(account, respondAsync))
  expect(200, await gateway.api.call('POST', '/v1/token/refresh', { body: { refreshToken } }))
  expect(204, await gateway.api.forgotten(account.email))
  await mails.next(account.email, /Choose a new password/)
  for (const path of ['/', '/metrics', '/queues/api/queues?activeQueue=passwords', '/live.json'])
    assert.equal((await fetchPatiently(gateway.opsUrl + path)).status, 200, path)
  // Its last lines have arrived then.
  await gateway.stop()
  const refused = gateway.logs.filter((line) => NO_RIGHT.test(JSON.stringify(line)))
  assert.deepEqual(refused, [])
})

test('the log of a gateway whose user may not run scripts names the command', async (t) => {
  const env = { ...system.environment, REDIS_URL: await allow(`${ACL_RULE} -evalsha -eval`) }
  const gateway = startProcess({ entry: gatewayProgram.entry, env })
  t.onTestFinished(() => gateway.close())
  const { url } = await gateway.waitForLog(({ msg }) => msg === 'gateway listening')
  assertProblem(await new Client(String(url)).login(newCredentials(), asIs), 503, 'unavailable')
  await gateway.waitForLog(({ reason }) => NO_RIGHT.test(String(reason)) && /eval/.test(String(reason)))
})
