// A user of Redis with the documented rights does everything; without one, it is told which.
import assert from 'node:assert/strict'
import { startProcess } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'
import { gatewayProgram } from '@spillway/infra/start/member'
import { ACL_RULE } from '@spillway/queue/inside/ioredis'
import { test } from 'vitest'
import { expect, respondAsync } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { openSystem } from '../system.ts'

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
    assert.equal((await fetch(gateway.opsUrl + path)).status, 200, path)
  // Its last lines have arrived then.
  await gateway.stop()
  const complaints = gateway.logs.filter(({ level }) => level === 'warn' || level === 'error')
  // PostgreSQL may be slow among other tests.
  const ofRedis = complaints.filter((line) => !('database' in line))
  assert.deepEqual(ofRedis, [])
})

for (const [what, rule, command] of [
  ['info', ACL_RULE.replace('+info', ''), 'info'],
  ['scripts', `${ACL_RULE} -evalsha -eval`, 'eval'],
  ['keys', ACL_RULE.replace('~{spillway}*', '~elsewhere'), 'eval'],
  ['channels', ACL_RULE.replace('&{spillway}*', '&elsewhere'), 'subscribe'],
] as const) {
  test(`a gateway whose user lacks the right to ${what} is not ready, and says so in one sentence`, async (t) => {
    const env = { ...system.environment, REDIS_URL: await allow(rule) }
    const gateway = startProcess({ entry: gatewayProgram.entry, env })
    t.onTestFinished(() => gateway.close())
    const sentence =
      /^The user of Redis may not (run|use a key of|use the channel of) "([a-z]+)": give it the rule (.*), with the QUEUE_PREFIX/
    await until(() => gateway.logs.some(({ reason }) => sentence.exec(String(reason))?.[2] === command), {
      what: gateway.output(),
    })
    const { reason } = gateway.logs.find(({ reason }) => sentence.test(String(reason))) ?? {}
    assert.equal(sentence.exec(String(reason))?.[3], ACL_RULE)
    assert.doesNotMatch(gateway.output(), /wiki|https?:\/\/github/)
  })
}
