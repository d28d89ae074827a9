// SIGTERM and SIGKILL in the middle of the work: what becomes of the jobs, and of the process.
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { closedGate } from '@spillway/infra/harness/namespace'
import { startProcess } from '@spillway/infra/processes/node-process'
import { listening } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import type { PasswordClient, Submitted } from '@spillway/queue/client'
import { test } from 'vitest'
import { clientFor, readyClient, resultOf, startedWorker, submit, workerEnvironment } from '../parts.ts'
import { activeJobs, completionOf, jobKey, redisProxy, type Space, spaceFor, waitingJobs } from '../space.ts'
import { entry, startedWorkerProcess } from '../worker-process.ts'

const match = { kind: 'match' }
/** A grace that nothing here can wait for: what ends all the same did not. */
const ENDLESS_MS = '600000'

/** Longer than any test. */
const ENDLESS_HASH = '$spillway-wait$99000$'

/** Adds jobs with these hashes until so many are in hand; twice as many when others wait */
async function busy(space: Space, client: PasswordClient, hashes: string[], inHand = 2): Promise<Submitted[]> {
  const pending: Submitted[] = []
  for (const storedHash of hashes) pending.push(await submit(client, 'verify', { password: 'right', storedHash }))
  await until(async () => (await activeJobs(space)).length >= inHand)
  return pending
}

test.concurrent('SIGTERM: no new job is taken, those in hand are finished, and the exit code is 0', async (t) => {
  const { space, client } = await clientFor(t)
  const worker = await startedWorkerProcess(space)
  const gate = await closedGate(t)
  const pending = await busy(space, client, Array<string>(16).fill(gate.storedHash))
  const stopped = worker.stop('SIGTERM')
  await worker.waitForLog(({ msg }) => msg === 'worker stopping')
  await until(() => client.estimates.load().workers === 0, { what: 'a worker that is not counted on' })
  gate.open()
  assert.deepEqual(await stopped, { code: 0, signal: null })
  assert.deepEqual(await activeJobs(space), [])
  const left = (await waitingJobs(space)).reverse()
  const done = pending.length - left.length
  assert.ok(done >= 2 && done < pending.length, `${done} done`)
  const notBegun = pending.slice(done).map(({ job }) => job.id)
  assert.deepEqual(left, notBegun)
  for (const one of pending.slice(0, done)) {
    assert.deepEqual(await resultOf(one), match)
    assert.ok(await completionOf(space, one.job.id), 'a job that was answered is finished in the queue as well')
  }
})

test.concurrent('SIGINT does the same: an idle worker ends at once, and its ops port with it', async (t) => {
  const space = spaceFor(t)
  const worker = await startedWorkerProcess(space, { SHUTDOWN_GRACE_MS: ENDLESS_MS })
  assert.deepEqual(await worker.stop('SIGINT'), { code: 0, signal: null })
  await assert.rejects(fetch(`${worker.opsUrl}/healthz`))
})

test.concurrent('jobs that outlast the grace period are requeued, and another worker does them', async (t) => {
  const { space, client } = await clientFor(t)
  const worker = await startedWorkerProcess(space, { SHUTDOWN_GRACE_MS: '200' })
  const gate = await closedGate(t)
  const pending = await busy(space, client, [gate.storedHash, gate.storedHash, '$spillway-token$'])
  const answers = pending.map((one) => resultOf(one))
  assert.deepEqual(await worker.stop(), { code: 0, signal: null })
  assert.ok(worker.logs.filter(({ msg }) => msg === 'job requeued unfinished').length >= 2)
  assert.deepEqual(await activeJobs(space), [])
  const ids = pending.map(({ job }) => job.id)
  assert.deepEqual((await waitingJobs(space)).reverse(), ids)
  for (const { job } of pending) assert.equal(await space.redis.exists(`${jobKey(space, job.id)}:lock`), 0)

  gate.open()
  await startedWorker(space, { slots: 3 })
  assert.deepEqual(await Promise.all(answers), [match, match, match])
})

test.concurrent("SIGTERM while the collector of traces says nothing: the exporter's patience is not waited for, and the exit code is 0", async (t) => {
  const { space, client } = await clientFor(t)
  const server = createServer()
  const port = await listening(server)
  space.closing(async () => server.close())
  const patient = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_EXPORTER_OTLP_TIMEOUT: ENDLESS_MS,
    OTEL_BSP_EXPORT_TIMEOUT: ENDLESS_MS,
  }
  const worker = await startedWorkerProcess(space, patient)
  assert.ok(await resultOf(await submit(client, 'hash', { password: 'x' })))
  assert.deepEqual(await worker.stop(), { code: 0, signal: null })
})

test.concurrent('SIGTERM while Redis is away ends the worker all the same, with exit code 0', async (t) => {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  const client = await readyClient(space)
  const worker = await startedWorkerProcess(space, { REDIS_URL: proxy.url, SHUTDOWN_GRACE_MS: '300' })
  await busy(space, client, [ENDLESS_HASH], 1)
  proxy.refuse()
  const metrics = async () => (await fetch(`${worker.opsUrl}/metrics`)).text()
  await until(async () => (await metrics()).includes('spillway_redis_connected 0\n'))
  assert.deepEqual(await worker.stop(), { code: 0, signal: null })
})

test.concurrent('SIGTERM before Redis has been found ends the worker with exit code 0', async (t) => {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  proxy.refuse()
  const worker = startProcess({ entry, env: { ...workerEnvironment(space), REDIS_URL: proxy.url } })
  space.closing(() => worker.close())
  await worker.waitForLog(({ msg }) => msg === 'redis connection failed')
  assert.deepEqual(await worker.stop(), { code: 0, signal: null })
})

test.concurrent('SIGKILL: the jobs of the dead worker are answered by another one', async (t) => {
  const { space, client } = await clientFor(t)
  const gate = await closedGate(t)
  const doomed = await startedWorkerProcess(space, { WORKER_CONCURRENCY: '3' })
  const pending = await busy(space, client, Array<string>(3).fill(gate.storedHash), 3)
  await doomed.stop('SIGKILL')
  await until(() => client.estimates.load().workers === 0, { what: 'a worker that is forgotten' })
  assert.equal(client.estimates.predictedWaitMs(), Number.POSITIVE_INFINITY)
  gate.open()
  const other = await startedWorker(space, { slots: 3 })
  assert.deepEqual(await Promise.all(pending.map((one) => resultOf(one))), [match, match, match])
  const metrics = await (await fetch(`${other.opsUrl}/metrics`)).text()
  // More when a busy machine stops the other worker for longer than its locks last.
  assert.ok(Number(/^spillway_jobs_stalled_total (\d+)$/m.exec(metrics)?.[1]) >= 3)
})
