// The live page: opened late, at several gateways, and with lies in Redis.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { Queue } from 'bullmq'
import { describe, test } from 'vitest'
import type { LiveState } from '../../src/operators/live.ts'
import { respondAsync } from '../client.ts'
import { type Clients, openSystem } from '../system.ts'

const system = await openSystem()
const key = `${system.namespace.queuePrefix}:gateways`

async function liveOf({ opsUrl }: { opsUrl: string }): Promise<LiveState> {
  const response = await fetch(`${opsUrl}/live.json`)
  assert.equal(response.status, 200)
  return JSON.parse(await response.text())
}

/** So many logins that nobody waits for; each is answered with a ticket. */
async function comeAndGo({ api }: Clients, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const { status } = await api.login({ email: `nobody-${n}@example.test`, password: 'a passphrase' }, respondAsync)
    assert.equal(status, 202)
  }
}

test('a page that is opened in the middle of a spike is told how it came, and what was done about it', async (t) => {
  const gateway = await system.gateway()
  t.onTestFinished(() => gateway.close())
  // The queue is not read before Redis has been found.
  await until(async () => (await liveOf(gateway)).history.waiting.at(-1) === 0)
  await comeAndGo(gateway, 5)
  const { history, queue, lines, predictedWaitMs, workers, requests } = await until(async () => {
    const state = await liveOf(gateway)
    // By the clock of Redis, the jobs may be as old as the report itself.
    const isReported = state.queue?.deferred === 5 && state.queue.oldestMs.deferred > 0
    return state.history.waiting.at(-1) === 5 && isReported ? state : undefined
  })
  assert.deepEqual([queue?.deferred, queue?.absent, queue?.abandoned, lines[0]?.last], [5, 0, 0, 5])
  assert.deepEqual([predictedWaitMs, workers, requests.ticket], [null, [], 5])
  assert.equal(
    history.waiting.find((count) => count !== null),
    0,
  )
  assert.deepEqual([history.finishedPerSecond.at(-1), history.capacityPerSecond.at(-1)], [0, 0])

  await system.worker()
  const done = await until(async () => {
    const state = await liveOf(gateway)
    const hasFinished = state.history.finishedPerSecond.some((rate) => rate !== null && rate > 0)
    // The prediction is read apart from the report, a quarter of a second later at most.
    return hasFinished && (state.predictedWaitMs ?? 0) > 0 && state.queue?.deferred === 0 ? state : undefined
  })
  assert.deepEqual(
    done.workers.map(({ slots }) => slots),
    [1],
  )
  assert.ok(done.history.waiting.includes(5), 'what was before is still there')
  assert.ok(done.history.capacityPerSecond.some((capacity) => capacity !== null && capacity > 0))
  assert.equal(done.history.waiting.length, done.history.finishedPerSecond.length)

  // The times are of the last minute: what was before says nothing about now.
  const completed = `${system.namespace.queuePrefix}:passwords:completed`
  const { times } = await until(async () => {
    const state = await liveOf(gateway)
    return state.queue?.completed === 5 ? state : undefined
  })
  assert.equal(times?.jobs, 5)
  assert.ok((times?.serviceMs.p50 ?? 0) > 0)
  for (const id of await system.redis.zrange(completed, 0, '-1')) await system.redis.zincrby(completed, -61_000, id)
  await until(async () => (await liveOf(gateway)).times === null)
  assert.equal((await liveOf(gateway)).queue?.completed, 5)
})

test('while the queue is paused no end is predicted', async (t) => {
  const gateway = await system.gateway()
  t.onTestFinished(() => gateway.close())
  await until(async () => (await liveOf(gateway)).predictedWaitMs !== null)
  const queue = new Queue('passwords', { connection: system.redis, prefix: system.namespace.queuePrefix })
  await queue.pause()
  const { queue: shown } = await until(async () => {
    const state = await liveOf(gateway)
    return state.queue?.paused ? state : undefined
  })
  assert.equal(shown?.paused, true)
  await until(async () => (await liveOf(gateway)).predictedWaitMs === null)
  await queue.resume()
  await until(async () => (await liveOf(gateway)).predictedWaitMs !== null)
  await queue.close()
})

test('the requests of all gateways are added up at each of them, until one goes', async (t) => {
  const one = await system.gateway()
  t.onTestFinished(() => one.close())
  const other = await system.gateway()
  await comeAndGo(one, 2)
  await comeAndGo(other, 1)
  for (const gateway of [one, other]) {
    const state = await until(async () => {
      const live = await liveOf(gateway)
      return live.requests.ticket === 3 ? live : undefined
    })
    assert.equal(state.gateways.length, 2)
    assert.equal(state.requestsLately.ticket, 3)
    assert.ok(state.requestsPerSecond.ticket > 0)
  }
  await other.close()
  const alone = await liveOf(one)
  assert.deepEqual([alone.gateways.length, alone.requests.ticket], [1, 2])
})

describe('what others write there', () => {
  const counts = { answered: 1, ticket: 1, rejected: 1, refused: 1, overloaded: 1, failed: 1, gone: 1 }
  const entryAt = (at: number) => ({
    ...{ at, name: 'host:1', total: counts, lately: counts, latelyMs: 1_000 },
    ...{ reasons: [{ reason: 'gateway_overloaded', count: 7 }], delayMs: 1_500 },
  })
  const hourMs = 3_600_000

  test('counts for nothing unless it is an entry of now, and goes when the next gateway starts', async () => {
    const gateway = await system.gateway()
    const gatewaysAfter = async (fields: Record<string, unknown>) => {
      await system.redis.hset(
        key,
        Object.fromEntries(Object.entries(fields).map(([id, it]) => [id, JSON.stringify(it)])),
      )
      return (await liveOf(gateway)).gateways.length
    }
    const entry = entryAt(Date.now())
    const { at: _at, ...timeless } = entry
    const old = {
      old: entryAt(entry.at - hourMs),
      early: entryAt(entry.at + hourMs),
      timeless,
      nothing: null,
      list: [],
    }
    assert.equal(await gatewaysAfter(old), 1)
    const wrong: Record<string, (at: number) => object> = {
      markup: (at) => ({ ...entryAt(at), name: '<b>host</b>' }),
      negative: (at) => ({ ...entryAt(at), total: { ...counts, failed: -1 } }),
      immense: (at) => ({ ...entryAt(at), lately: { ...counts, failed: 1e300 } }),
      incomplete: (at) => ({ ...entryAt(at), total: {} }),
      script: (at) => ({ ...entryAt(at), reasons: [{ reason: '<b>', count: 1 }] }),
      slow: (at) => ({ ...entryAt(at), delayMs: 1e300 }),
    }
    for (const [id, make] of Object.entries(wrong)) assert.equal(await gatewaysAfter({ [id]: make(Date.now()) }), 1, id)
    await system.redis.hset(key, 'text', 'no JSON')
    assert.equal(await gatewaysAfter({ right: entryAt(Date.now()) }), 2)
    const { findings, gateways } = await liveOf(gateway)
    const overloaded = findings.find(({ runbook }) => runbook === 'SpillwayGatewayOverloaded')
    assert.equal(overloaded?.detail, '7 requests in the last minute, at host:1, where requests wait 1.5 s')
    assert.equal(gateways[1]?.lately.overloaded, 1)

    const next = await system.gateway()
    await until(async () => {
      const left = await system.redis.hkeys(key)
      return ![...Object.keys(old), 'text'].some((id) => left.includes(id))
    })
    await Promise.all([gateway.close(), next.close()])
    await system.redis.del(key)
  })

  test('does not keep the page from being shown, whatever it is', async () => {
    await system.redis.set(key, 'no hash')
    const gateway = await system.gateway()
    assert.equal((await liveOf(gateway)).gateways.length, 1)
    await gateway.close()
    await system.redis.del(key)
  })
})
