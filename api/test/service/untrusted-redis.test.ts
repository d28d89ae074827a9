// An attacker with write access to Redis, end to end: no session opens without the right password.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { redisTime } from '@spillway/infra/rig/clocks'
import { test } from 'vitest'
import { entry } from '../../../worker/test/capacity-entry.ts'
import { slowAccount } from '../account.ts'
import { assertProblem, type Call, type Credentials, expect, keepTicket, respondAsync } from '../client.ts'
import { watchQueue } from '../queue.ts'
import { openSystem, whileFrozen } from '../system.ts'

const system = await openSystem()
const worker = await system.worker({ SPILLWAY_TEST_HASHES: 'true' })
const gateway = await system.gateway({ LOGIN_WAIT_MS: '2000' })
const { api } = gateway
const { redis, namespace } = system
const queue = watchQueue(system)
const key = (name: string) => `${namespace.queuePrefix}:${name}`
const jobOf = (ticket: string) => ticket.split('.')[0] ?? ''

/** A login that waits for its hash, and the id of its job. */
async function begin(credentials: Credentials, options: Call = {}) {
  const known = (await queue.added()).length
  const answer = api.login(credentials, options)
  const id = await until(async () => (await queue.added())[known])
  return { answer, id }
}

/** A login for which somebody stores and announces a verdict before the worker does. */
function answeredBySomeoneElse(credentials: Credentials, verdict: string) {
  return whileFrozen(worker, async () => {
    const attempt = await begin(credentials)
    const { replyTo } = await sealedOf(attempt.id)
    await redis.set(key(`verdict:${attempt.id}`), verdict, 'PX', 60_000)
    assert.equal(await redis.publish(key(`replies:${replyTo}`), `${attempt.id} ${verdict}`), 1)
    return attempt
  })
}

async function sealedOf(jobId: string): Promise<{ data: string; replyTo: string }> {
  const data = (await redis.hget(key(`passwords:${jobId}`), 'data')) ?? ''
  return { data, replyTo: JSON.parse(data).replyTo }
}

/** A ticket of a right password, and the verdict that was stored for it. */
async function earned(credentials: Credentials): Promise<{ ticket: string; verdict: string }> {
  const { ticket } = expect(202, await api.login(credentials, respondAsync))
  return { ticket, verdict: await until(() => redis.get(key(`verdict:${jobOf(ticket)}`))) }
}

/** How many verdicts the gateway has counted that did not open. */
async function brokenVerdicts(): Promise<number> {
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text()
  return Number(/spillway_seal_failures_total\{purpose="verdict"\} (\d+)/.exec(metrics)?.[1] ?? 0)
}

async function sessionsOf({ email }: Credentials): Promise<number> {
  return system.database.session.count({ where: { user: { email } } })
}

test('the verdict of a right password, announced and stored for a wrong one, is counted and opens nothing', async () => {
  const victim = await slowAccount(system.database, 400)
  const { verdict } = await earned(victim)
  const attempt = await answeredBySomeoneElse({ ...victim, password: 'wrong' }, verdict)
  assertProblem(await attempt.answer, 401, 'invalid_credentials')
  assert.equal(await sessionsOf(victim), 0)
  assert.ok((await brokenVerdicts()) > 0)
})

test('a verdict that is none, made up for one who waits, is counted and keeps nobody out', async () => {
  const account = await slowAccount(system.database, 1)
  const before = await brokenVerdicts()
  const attempt = await answeredBySomeoneElse(account, 'used')
  expect(200, await attempt.answer)
  assert.ok((await brokenVerdicts()) > before)
})

test('the request of a right password, put into the job of a wrong one, is logged and opens nothing', async () => {
  const victim = await slowAccount(system.database, 10)
  const { ticket } = await earned(victim)
  const { data } = await sealedOf(jobOf(ticket))
  const attempt = await whileFrozen(worker, async () => {
    const begun = await begin({ ...victim, password: 'wrong' }, keepTicket)
    await redis.hset(key(`passwords:${begun.id}`), 'data', data)
    return begun
  })
  assertProblem(await attempt.answer, 503, 'unavailable')
  assert.equal(await sessionsOf(victim), 0)
  await worker.waitForLog(({ jobId, code }) => jobId === attempt.id && code === 'forged_job')
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

test('lies about workers cost no more than a ticket or a refusal', async () => {
  const account = await slowAccount(system.database, 10)
  const slow = { ...entry, slots: 1, serviceMs: 600_000, lineMs: 600_000, latencyMs: 600_000 }
  const lies = ['', '{', '[]', 'null', '1e999', JSON.stringify({ slots: -1 }), JSON.stringify({ ...slow, at: 1e300 })]
  const at = await redisTime(redis)
  for (const [n, lie] of [...lies, JSON.stringify({ ...slow, at })].entries()) {
    await redis.hset(key('capacity'), `liar-${n}`, lie)
  }
  for (let n = 0; n < 5; n += 1) {
    const { status } = await api.login(account, keepTicket)
    assert.ok([200, 202, 503].includes(status))
  }
  assert.equal((await api.call('GET', '/healthz')).status, 200)
  // An entry that is not renewed does not count.
  await until(async () => (await api.login(account)).status === 200)
})
