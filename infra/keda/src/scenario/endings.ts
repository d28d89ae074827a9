// Workers that are killed, scaled to zero and uninstalled lose no job.
import assert from 'node:assert/strict'
import { until } from '@spillway/local/processes/until'
import { installChart, NAMESPACE, RELEASE } from '../installation.ts'
import type { Steps } from '../steps.ts'
import { jobKeys, type Stage } from './stage.ts'

export async function endingSteps(stage: Stage, { step }: Steps): Promise<void> {
  const { accounts, slow, timeline, queue, settled, loginsSucceed, replicas, environment } = stage
  const { kubectl, kubelet, backends, redis, gatewayUrl: url } = environment
  const [someone = ''] = accounts

  await step("a killed worker's jobs finish elsewhere", async () => {
    await installChart(kubectl, backends, url, ['autoscaling.minReplicas=2'])
    await settled(2, 180_000)
    const logins = loginsSucceed(Array.from({ length: 6 }, () => slow))
    await until(() => (timeline.latest()?.depth ?? 0) >= 6, { what: 'six jobs' })
    const [victim] = kubelet.pods('worker')
    assert.ok(victim?.pid)
    process.kill(victim.pid, 'SIGKILL')
    const longestMs = await logins
    await until(() => victim.state.restarts === 1 && victim.state.ready, { timeoutMs: 30_000, what: 'a new container' })
    return `6 logins of 3 s, the longest took ${(longestMs / 1_000).toFixed(1)} s`
  })

  await step('scaled to zero, a job of either lane wakes a worker', async () => {
    await installChart(kubectl, backends, url, ['autoscaling.minReplicas=0'])
    const wakingS: string[] = []
    for (const lane of ['deferred', 'waiting'] as const) {
      await settled(0, 180_000)
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

  await step('uninstalled, every process ends by itself', async () => {
    const runs = [...kubelet.pods('gateway'), ...kubelet.pods('worker')]
    await kubectl.helm('uninstall', RELEASE, '--namespace', NAMESPACE, '--wait')
    await until(() => runs.every(({ state }) => state.exitCode !== undefined), {
      timeoutMs: 60_000,
      what: 'the end of all pods',
    })
    assert.deepEqual(new Set(runs.map(({ state }) => state.exitCode)), new Set([0]))
    assert.equal(await replicas().catch(() => 'gone'), 'gone')
    return `${runs.length} processes, exit code 0`
  })
}
