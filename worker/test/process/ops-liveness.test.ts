// Liveness is progress: a worker whose connection brings no reply is found by its probe, as a
// kubelet would ask it, and the one that is started in its place does the work. A Redis that
// answers nobody is no reason to restart anything.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { readMetric } from '@spillway/infra/rig/api-client'
import { type TestContext, test } from 'vitest'
import { answerOf, readyClient } from '../parts.ts'
import { redisProxy, spaceFor } from '../space.ts'
import { startedWorkerProcess } from '../worker-process.ts'

const STUCK_AFTER_MS = 1_500

/** Workers that reach Redis through the proxy alone. */
async function scene(t: TestContext) {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  const env = { REDIS_URL: proxy.url, STUCK_AFTER_MS: String(STUCK_AFTER_MS), SHUTDOWN_GRACE_MS: '500' }
  return { space, proxy, worker: () => startedWorkerProcess(space, env) }
}

const healthz = async ({ opsUrl }: { opsUrl: string }) => (await fetch(`${opsUrl}/healthz`)).status

test.concurrent('a worker whose connections bring no reply is found by its probe, and its successor does the waiting job', async (t) => {
  const { space, proxy, worker } = await scene(t)
  const wedged = await worker()
  assert.equal(await healthz(wedged), 200)
  // Frozen connections would be replaced by their socket's timeout.
  proxy.trickleReplies()
  const pending = await (await readyClient(space)).submit('hash', { password: 'a passphrase' })
  await until(async () => (await healthz(wedged)) === 503, { what: 'a failing probe' })
  const stuckS = await readMetric(wedged.opsUrl, 'spillway_worker_stuck_seconds')
  assert.ok(stuckS >= STUCK_AFTER_MS / 1_000, `stuck for ${stuckS} s`)

  // As a kubelet does: ends it, and starts it again.
  assert.deepEqual(await wedged.stop(), { code: 0, signal: null })
  const restarted = await worker()
  const answer = await answerOf(pending)
  assert.equal(answer?.kind, 'hashed')
  assert.equal(await healthz(restarted), 200)
})

test.concurrent('a worker stays alive while Redis answers nobody', async (t) => {
  const { proxy, worker } = await scene(t)
  const frozen = await worker()
  proxy.freeze()
  const deadline = Date.now() + 3 * STUCK_AFTER_MS
  const answers = new Set<number>()
  await until(async () => {
    answers.add(await healthz(frozen))
    return Date.now() > deadline
  })
  assert.deepEqual([...answers], [200])
})
