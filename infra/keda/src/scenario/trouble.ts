// A paused queue, and a Redis server that is away or answers with errors: workers and gateways
// stay, and jobs wait.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { KEDA_USER, NAMESPACE, RELEASE } from '../installation.ts'
import type { Steps } from '../steps.ts'
import { AUTOSCALER, JOBS_PER_WORKER, jobKeys, SCALED_OBJECT, type Stage, SYNC_MS } from './stage.ts'

/** The same jobs wait through all of it. */
export async function troubleSteps(stage: Stage, steps: Steps): Promise<undefined> {
  const { accounts, timeline, queue, settled, stays, loginsSucceed, workers, environment } = stage
  const { api, redis, gatewayUrl } = environment

  const paused = accounts.slice(0, 4 * JOBS_PER_WORKER)
  let pausedLogins: Promise<number> | undefined
  await steps.step('a paused queue scales out by the jobs that wait in it, exactly, and runs none', async () => {
    await queue.pause()
    pausedLogins = loginsSucceed(paused, 'respond-async')
    pausedLogins.catch(() => undefined)
    await settled(paused.length / JOBS_PER_WORKER)
    await stays(paused.length / JOBS_PER_WORKER, 1.5 * SYNC_MS)
    assert.equal(timeline.latest()?.depth, paused.length)
    return `${paused.length} jobs, ${paused.length / JOBS_PER_WORKER} workers`
  })

  await steps.step('Redis away: workers and gateways stay', async () => {
    const before = workers()
    await redis.stop()
    await stays(before.length, 4 * SYNC_MS)
    assert.deepEqual(workers(), before)
    // The gateways stay as well, and answer requests that need no Redis.
    assert.equal((await fetch(`${gatewayUrl}/.well-known/jwks.json`)).status, 200)
    // KEDA cannot build its scaler and does not fall back: the autoscaler gets no metric, and
    // changes nothing.
    assert.equal(await api.conditionOf(AUTOSCALER, 'ScalingActive'), 'False')
    await redis.startAgain()
    await stage.autoscalerSees()
    assert.deepEqual(workers(), before)
    return `${before.length} workers, the same processes, for ${(4 * SYNC_MS) / 1_000} s`
  })

  await steps.step('Redis answers KEDA with errors: it falls back to the workers that there are', async () => {
    const before = workers()
    await redis.connection.call('ACL', 'SETUSER', KEDA_USER, '-eval')
    try {
      await until(async () => (await api.conditionOf(SCALED_OBJECT, 'Fallback')) === 'True', {
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

  await steps.step('resumed, the jobs that waited through it all are done, and their tickets are good', async () => {
    await queue.resume()
    await pausedLogins
    return `${paused.length} logins`
  })
}

/** Workers that are killed, scaled to zero and uninstalled lose no job. */
export async function endingSteps(stage: Stage, steps: Steps): Promise<undefined> {
  const { accounts, slow, timeline, queue, settled, loginsSucceed, replicas, environment } = stage
  const { kubectl, kubelet, install, redis } = environment
  const [someone = ''] = accounts

  await steps.step("a killed worker's jobs finish elsewhere", async () => {
    await install('autoscaling.minReplicas=2')
    await settled(2)
    const logins = loginsSucceed(Array.from({ length: 6 }, () => slow))
    await until(() => (timeline.latest()?.depth ?? 0) >= 6, { what: 'six jobs' })
    const [victim] = kubelet.pods('worker')
    assert.ok(victim)
    await victim.kill()
    const longestMs = await logins
    await until(() => victim.restarts === 1 && victim.ready, { what: 'a new container' })
    return `6 logins of 3 s, the longest took ${(longestMs / 1_000).toFixed(1)} s`
  })

  await steps.step('scaled to zero, a job of either lane wakes a worker', async () => {
    await install('autoscaling.minReplicas=0')
    const wakingS: string[] = []
    for (const lane of ['deferred', 'waiting'] as const) {
      await settled(0)
      // With a ticket at once: a gateway may not know yet that the worker is gone.
      const login = loginsSucceed([someone], 'respond-async')
      const job = await until(async () => (await queue.getJobs(['prioritized']))[0], { what: 'a job' })
      // As gateways do when a client redeems its ticket.
      if (lane === 'waiting') await job.changePriority({ priority: 0 })
      const waiting = await redis.connection.llen(jobKeys.waiting)
      const deferred = await redis.connection.zcard(jobKeys.deferred)
      assert.deepEqual([waiting, deferred], lane === 'waiting' ? [1, 0] : [0, 1])
      wakingS.push(((await login) / 1_000).toFixed(1))
    }
    return `a login took ${wakingS[0]} s with a ticket, ${wakingS[1]} s in the held lane`
  })

  await steps.step('uninstalled, every container ends by itself', async () => {
    const runs = [...kubelet.pods('gateway'), ...kubelet.pods('worker')]
    await kubectl.helm('uninstall', RELEASE, '--namespace', NAMESPACE, '--wait')
    await until(() => runs.every(({ exitCode }) => exitCode !== undefined), { what: 'the end of all pods' })
    assert.deepEqual(new Set(runs.map(({ exitCode }) => exitCode)), new Set([0]))
    assert.equal(await replicas().catch(() => 'gone'), 'gone')
    return `${runs.length} containers, exit code 0`
  })
}
