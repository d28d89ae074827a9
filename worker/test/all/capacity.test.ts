// What clients know of a worker process that ends.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { closedGate } from '@spillway/infra/rig/namespace'
import { test } from 'vitest'
import { answerOf, clientFor } from '../parts.ts'
import { startedWorkerProcess } from '../worker-process.ts'

test.concurrent('a worker process that is told to stop is not counted on any more, before its last job is done', async (t) => {
  const { space, client } = await clientFor(t)
  const worker = await startedWorkerProcess(space)
  await until(() => client.load().workers === 1)
  const gate = await closedGate(t)
  const pending = await client.submit('verify', { password: 'x', storedHash: gate.storedHash })
  await until(() => client.load().active === 1)
  const stopped = worker.stop('SIGTERM')
  await until(() => client.load().workers === 0)
  assert.equal(await answerOf(pending, 0), undefined)
  gate.open()
  assert.equal((await stopped).code, 0)
})

test.concurrent('a worker process that is killed is forgotten', async (t) => {
  const { space, client } = await clientFor(t)
  const worker = await startedWorkerProcess(space)
  await until(() => client.load().workers === 1)
  await worker.stop('SIGKILL')
  await until(() => client.load().workers === 0)
  assert.equal(client.predictedWaitMs('held'), Number.POSITIVE_INFINITY)
})
