// A worker that cannot start says why in one sentence, exits with 1, and has touched no job.
import assert from 'node:assert/strict'
import { startProcess } from '@spillway/infra/processes/node-process'
import { test } from 'vitest'
import { clientFor, submit, workerEnvironment } from '../parts.ts'
import { activeJobs, type Space, spaceFor, waitingJobs } from '../space.ts'
import { entry, startedWorkerProcess } from '../worker-process.ts'

/** The one line that a worker ends with in this environment. */
async function refusal(space: Space, env: NodeJS.ProcessEnv): Promise<string> {
  const worker = startProcess({ entry, env })
  space.closing(() => worker.close())
  assert.deepEqual(await worker.exited, { code: 1, signal: null })
  const lines = worker.output().split('\n')
  assert.equal(lines.length, 1, worker.output())
  return lines.join()
}

test.concurrent('a taken ops port: no job was taken', async (t) => {
  const { space, client } = await clientFor(t)
  const other = await startedWorkerProcess(spaceFor(t))
  const { job } = await submit(client, 'hash', { password: 'x' })
  const sentence = await refusal(space, { ...workerEnvironment(space), OPS_PORT: new URL(other.opsUrl).port })
  assert.match(sentence, /^The worker cannot start: .*EADDRINUSE.*\d+/)
  assert.deepEqual(await waitingJobs(space), [job.id])
  assert.deepEqual(await activeJobs(space), [])
})

test.concurrent('a user or password that Redis does not know', async (t) => {
  const space = spaceFor(t)
  const url = new URL(space.redisUrl)
  url.username = 'nobody'
  url.password = 'hush-password'
  const worker = startProcess({ entry, env: { ...workerEnvironment(space), REDIS_URL: url.href } })
  space.closing(() => worker.close())
  await worker.waitForLog((line) => /WRONGPASS|NOAUTH/.test(JSON.stringify(line)))
  assert.ok(!worker.output().includes('hush'), worker.output())
})
