// The live page's figures: jobs that wait, the worker that comes, a pause.
import assert from 'node:assert/strict'
import { readMetric } from '@spillway/infra/harness/api-client'
import { until } from '@spillway/infra/processes/until'
import { Queue } from 'bullmq'
import { test } from 'vitest'
import type { LiveState } from '../../src/ops/live.ts'
import { expect, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

const system = await openSystem()

/** Findings that are true, and told for a minute, where the machine stood still. */
const ofMachine = ['PostgreSQL does not answer', 'Requests fail for lack of Redis', 'This gateway is overloaded']
const titlesOf = ({ findings }: LiveState) =>
  findings.map(({ title }) => title).filter((title) => !ofMachine.includes(title))

test('the page shows the jobs that wait, who hashes them and when the last one ends', async () => {
  const { api, opsUrl } = await system.gateway()
  const stateOnce = (isSo: (state: LiveState) => boolean) =>
    until(async () => {
      const state: LiveState = JSON.parse(await (await fetch(`${opsUrl}/live.json`)).text())
      return isSo(state) ? state : undefined
    })
  const tickets: string[] = []
  for (let n = 0; n < 5; n++) {
    const credentials = { email: `nobody-${n}@example.test`, password: 'a passphrase' }
    tickets.push(expect(202, await api.login(credentials, respondAsync)).ticket)
  }
  // By the clock of Redis, the jobs may be as old as the report itself.
  const waiting = await stateOnce(({ queue }) => queue?.ticketed === 5 && queue.oldestMs.ticketed > 0)
  assert.equal(waiting.line.last, 5)
  assert.deepEqual([waiting.predictedWaitMs, waiting.workers, waiting.requests.ticket], [null, [], 5])
  assert.deepEqual(titlesOf(waiting), ['No worker is alive'])

  const worker = await system.worker()
  // Read from Redis, by gateways and workers alike.
  for (const at of [opsUrl, worker.opsUrl])
    await until(async () => (await readMetric(at, 'spillway_redis_evicts')) === 0, { what: 'the policy of eviction' })
  for (const ticket of tickets) await until(async () => (await api.redeem(ticket)).status === 401)
  const done = await stateOnce(
    (state) => state.queue?.ticketed === 0 && state.workers[0]?.finished.answered === 5 && titlesOf(state).length === 0,
  )
  assert.equal(done.workers[0]?.slots, 1)
  await stateOnce(({ predictedWaitMs, jobsPerSecond }) => predictedWaitMs !== null && jobsPerSecond > 0)

  const queue = new Queue('passwords', { connection: system.redis, prefix: system.namespace.queuePrefix })
  await queue.pause()
  const paused = await stateOnce((state) => state.queue?.paused === true && state.predictedWaitMs === null)
  assert.equal(paused.findings[0]?.title, 'The queue is paused')
  await queue.resume()
  await stateOnce((state) => state.predictedWaitMs !== null && titlesOf(state).length === 0)
  await queue.close()
})
