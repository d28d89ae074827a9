// A paused queue, and a Redis server that is away or answers with errors: workers and gateways stay, and jobs wait.
import assert from 'node:assert/strict'
import { until } from '@spillway/local/processes/until'
import { conditionOf } from '../api.ts'
import { KEDA_USER } from '../installation.ts'
import type { Steps } from '../steps.ts'
import { AUTOSCALER, JOBS_PER_WORKER, SCALED_OBJECT, type Stage, SYNC_MS } from './stage.ts'

/** The same jobs wait through all of it. */
export async function troubleSteps(stage: Stage, { step }: Steps): Promise<void> {
  const { accounts, timeline, queue, settled, stays, loginsSucceed, workers, environment } = stage
  const { api, redis, gatewayUrl } = environment

  const paused = accounts.slice(0, 4 * JOBS_PER_WORKER)
  let pausedLogins: Promise<number> | undefined
  await step('a paused queue scales out by the jobs that wait in it, exactly, and runs none', async () => {
    await queue.pause()
    pausedLogins = loginsSucceed(paused, 'respond-async')
    pausedLogins.catch(() => undefined)
    await settled(paused.length / JOBS_PER_WORKER)
    await stays(paused.length / JOBS_PER_WORKER, 1.5 * SYNC_MS)
    assert.equal(timeline.latest()?.depth, paused.length)
    return `${paused.length} jobs, ${paused.length / JOBS_PER_WORKER} workers`
  })

  await step('Redis away: workers and gateways stay', async () => {
    const before = workers()
    await redis.stop()
    await stays(before.length, 4 * SYNC_MS)
    assert.deepEqual(workers(), before)
    // The gateways stay as well, and answer requests that need no Redis.
    assert.equal((await fetch(`${gatewayUrl}/.well-known/jwks.json`)).status, 200)
    // KEDA cannot build its scaler and does not fall back: the autoscaler gets no metric, and changes nothing.
    assert.equal(await conditionOf(api, AUTOSCALER, 'ScalingActive'), 'False')
    await redis.startAgain()
    await stage.autoscalerSees()
    assert.deepEqual(workers(), before)
    return `${before.length} workers, the same processes, for ${(4 * SYNC_MS) / 1_000} s`
  })

  await step('Redis answers KEDA with errors: it falls back to the workers that there are', async () => {
    const before = workers()
    await redis.connection.call('ACL', 'SETUSER', KEDA_USER, '-eval')
    try {
      await until(async () => (await conditionOf(api, SCALED_OBJECT, 'Fallback')) === 'True', {
        timeoutMs: 4 * SYNC_MS,
        what: "KEDA's fallback",
      })
      await stays(before.length, 2 * SYNC_MS)
      assert.deepEqual(workers(), before)
    } finally {
      await redis.connection.call('ACL', 'SETUSER', KEDA_USER, '+eval')
    }
    return `${before.length} workers, the same processes`
  })

  await step('resumed, the jobs that waited through it all are done, and their tickets are good', async () => {
    await queue.resume()
    await pausedLogins
    return `${paused.length} logins`
  })
}
