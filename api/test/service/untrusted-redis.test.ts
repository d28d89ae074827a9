// An attacker with write access to Redis, end to end: no session opens without the right password.

import assert from 'node:assert/strict'
import { readMetric } from '@spillway/infra/harness/api-client'
import { withDoubles } from '@spillway/infra/harness/spillway'
import { until } from '@spillway/infra/processes/until'

import { test } from 'vitest'
import { slowAccount } from '../account.ts'
import { assertProblem, type Credentials, expect, respondAsync } from '../client.ts'
import { watchQueue } from '../queue.ts'
import { openSystem, whileFrozen } from '../system.ts'

const system = await openSystem()
const worker = await system.worker({}, withDoubles)
const gateway = await system.gateway({ LOGIN_WAIT_MS: '2000' })
const { api } = gateway
const { redis, namespace } = system
const queue = watchQueue(system)
const key = (name: string) => `${namespace.queuePrefix}:${name}`
const jobOf = (ticket: string) => ticket.split('.')[0] ?? ''

/** A login that waits for its hash, and the id of its job. */
async function begin(credentials: Credentials) {
  const known = (await queue.added()).length
  const answer = api.login(credentials)
  const id = await until(async () => (await queue.added())[known])
  return { answer, id }
}

/** A login for which somebody stores and announces a result before the worker does. */
function answeredBySomeoneElse(credentials: Credentials, result: string) {
  return whileFrozen(worker, async () => {
    const attempt = await begin(credentials)
    const { replyTo } = JSON.parse((await redis.hget(key(`passwords:${attempt.id}`), 'data')) ?? '')
    await redis.set(key(`result:${attempt.id}`), result, 'PX', 60_000)
    assert.equal(await redis.publish(key(`replies:${replyTo}`), `${attempt.id} ${result}`), 1)
    return attempt
  })
}

/** A ticket of a right password, and the result that was stored for it. */
async function earned(credentials: Credentials): Promise<{ ticket: string; result: string }> {
  const { ticket } = expect(202, await api.login(credentials, respondAsync))
  return { ticket, result: await until(() => redis.get(key(`result:${jobOf(ticket)}`))) }
}

/** How many results the gateway has counted that did not open. */
const brokenResults = () => readMetric(gateway.opsUrl, 'spillway_seal_failures_total', 'purpose="result"')

async function sessionsOf({ email }: Credentials): Promise<number> {
  return system.database.session.count({ where: { user: { email } } })
}

test('the result of a right password, announced and stored for a wrong one, is counted and opens nothing', async () => {
  const victim = await slowAccount(system.database, 400)
  const { result } = await earned(victim)
  const attempt = await answeredBySomeoneElse({ ...victim, password: 'wrong' }, result)
  assertProblem(await attempt.answer, 401, 'invalid_credentials')
  assert.equal(await sessionsOf(victim), 0)
  assert.ok((await brokenResults()) > 0)
})

test('a job that is doubled opens one session, and one that is deleted is added again', async () => {
  const account = await slowAccount(system.database, 10)
  const [doubled, deleted] = await whileFrozen(worker, async () => {
    const begun = [await begin(account), await begin(account)] as const
    await redis.lpush(key('passwords:wait'), begun[0].id)
    await redis.lrem(key('passwords:wait'), 0, begun[1].id)
    await redis.del(key(`passwords:${begun[1].id}`))
    return begun
  })
  expect(200, await doubled.answer)
  expect(200, await deleted.answer)
  assert.equal(await sessionsOf(account), 2)
})
