// Liveness is progress: a worker whose connection brings no reply is found by its probe, as a
// kubelet would ask it, and the one that is started in its place does the work. A Redis that
// answers nobody is no reason to restart anything.
import assert from 'node:assert/strict'
import { readMetric } from '@spillway/infra/harness/api-client'
import { until } from '@spillway/infra/processes/until'
import { type TestContext, test } from 'vitest'
import { readyClient, resultOf, submit } from '../parts.ts'
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
  const pending = await submit(await readyClient(space), 'hash', { password: 'a passphrase' })
  await until(async () => (await healthz(wedged)) === 503, { what: 'a failing probe' })
  const stuckS = await readMetric(wedged.opsUrl, 'spillway_worker_stuck_seconds')
  assert.ok(stuckS >= STUCK_AFTER_MS / 1_000, `stuck for ${stuckS} s`)

  // As a kubelet does: ends it, and starts it again.
  assert.deepEqual(await wedged.stop(), { code: 0, signal: null })
  const restarted = await worker()
  const answer = await resultOf(pending)
  assert.equal(answer?.kind, 'hashed')
  assert.equal(await healthz(restarted), 200)
})
