// What is shown: each step is a promise of the chart's README, and fails when it is not kept.
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { renderChart, valueSetsDir } from '@spillway/helm/chart'
import { until } from '@spillway/local/until'
import { Queue } from 'bullmq'
import { createAccounts, type Environment } from './environment.ts'
import { installChart, KEDA_USER, NAMESPACE, RELEASE } from './installation.ts'
import { logIn, startTraffic } from './logins.ts'
import type { Steps } from './steps.ts'
import { type DeploymentState, startTimeline, type Timeline } from './timeline.ts'

/** As in the values of this test. */
const MAX_REPLICAS = 8
const JOBS_PER_WORKER = 4
/** How often the cluster's autoscaler looks. */
const SYNC_MS = 15_000

const PASSWORD = 'whatever it is'
const QUEUE = '{spillway}:passwords'
const WORKERS = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/spillway-worker`
const AUTOSCALER = `/apis/autoscaling/v2/namespaces/${NAMESPACE}/horizontalpodautoscalers/keda-hpa-spillway-worker`
const SCALED_OBJECT = `/apis/keda.sh/v1alpha1/namespaces/${NAMESPACE}/scaledobjects/spillway-worker`

/** Runs all steps and gives the timeline of the spike: from a little before it until the workers are few again. */
export async function runScenario(
  environment: Environment,
  { step }: Steps,
): Promise<{ timeline: Timeline; endS: number }> {
  const { controlPlane, kubectl, kubelet, backends, redis, gateway, helm } = environment
  const { api } = controlPlane
  const url = gateway.url
  const accounts = await createAccounts(backends.databaseUrl, 'spike', 200, 250)
  const [slow = ''] = await createAccounts(backends.databaseUrl, 'slow', 1, 3_000)
  const [someone = ''] = accounts
  const traffic = startTraffic({ url, password: PASSWORD, accounts })
  const timeline = startTimeline({
    api,
    redis: redis.connection,
    keys: { waiting: `${QUEUE}:wait`, deferred: `${QUEUE}:prioritized`, active: `${QUEUE}:active` },
    deployment: WORKERS,
    results: traffic.results,
  })
  const queue = new Queue('passwords', {
    connection: { url: `redis://:${backends.redisPassword}@${backends.redisAddress}` },
    prefix: '{spillway}',
  })
  queue.on('error', () => {})

  async function replicas(): Promise<number> {
    return (await api.call<DeploymentState>('GET', WORKERS)).spec.replicas
  }

  /** Resolves when as many workers are asked for and ready, and none beside them is left. */
  async function settled(count: number, timeoutMs = 90_000): Promise<void> {
    const isSettled = async (): Promise<boolean> => {
      const { spec, status } = await api.call<DeploymentState>('GET', WORKERS)
      const all = [spec.replicas, status.readyReplicas ?? 0, kubelet.pods('worker').length]
      return all.every((one) => one === count)
    }
    await until(isSettled, { timeoutMs, what: `${count} workers` })
  }

  /** Fails when another number of workers is asked for within this time. */
  async function stays(count: number, forMs: number): Promise<void> {
    const from = timeline.now()
    await until(() => timeline.now() > from + forMs / 1_000, { timeoutMs: forMs + 5_000 })
    const seen = new Set(timeline.samples.filter(({ atS }) => atS > from).map((sample) => sample.replicas))
    assert.deepEqual([...seen], [count])
  }

  async function loginsSucceed(emails: string[], prefer?: string): Promise<number> {
    const options = { url, password: PASSWORD, ...(prefer === undefined ? {} : { prefer }) }
    const results = await Promise.all(emails.map((email) => logIn({ ...options, email })))
    assert.deepEqual(
      results.filter(({ failure }) => failure !== undefined),
      [],
    )
    return Math.max(...results.map(({ startedAt, endedAt }) => endedAt - startedAt))
  }

  function noFailures(): void {
    assert.deepEqual(
      traffic.results.filter(({ failure }) => failure !== undefined),
      [],
    )
  }

  await step('the API server takes every object of every value set', async () => {
    await kubectl.apply({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'rehearsal', labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    })
    let objects = 0
    for (const file of await readdir(valueSetsDir)) {
      const valueFiles = [join(valueSetsDir, file)]
      const yaml = await renderChart({ helm, release: 'rehearsal', namespace: 'rehearsal', valueFiles })
      objects += (await kubectl.dryRun(yaml, 'rehearsal')).length
    }
    return `${objects} objects`
  })

  await step('helm test: a login succeeds, the scaler watches a queue, a job shows in it', async () => {
    const report = await kubectl.helm('test', RELEASE, '--namespace', NAMESPACE, '--timeout', '1m')
    return `${report.match(/Phase:\s+Succeeded/g)?.length} tests`
  })

  await step('idle stays at the minimum', async () => {
    await settled(1)
    await stays(1, 2.5 * SYNC_MS)
    return '1 worker'
  })

  const spikeFrom = timeline.now()
  await step('a spike scales out to what the formula says, and every login succeeds', async () => {
    traffic.setRate(2)
    await until(() => traffic.results.length > 5, { what: 'the first logins' })
    timeline.mark('spike')
    const from = timeline.now()
    const since = (): string => `${(timeline.now() - from).toFixed(1)} s`
    traffic.setRate(24)
    await until(() => (timeline.latest()?.replicas ?? 0) > 1, {
      timeoutMs: 3 * SYNC_MS,
      what: 'a larger number of workers',
    })
    const decided = since()
    timeline.mark('decided')
    await until(() => kubelet.pods('worker').length > 1, { timeoutMs: 10_000, what: 'a second process' })
    const started = since()
    await until(() => (timeline.latest()?.ready ?? 0) > 1, { timeoutMs: 30_000, what: 'a second worker' })
    const ready = since()
    timeline.mark('first added slot')
    await settled(MAX_REPLICAS)
    await until(() => timeline.now() > from + 45, { timeoutMs: 60_000 })
    traffic.setRate(2)
    timeline.mark('spike over')
    await until(() => (timeline.latest()?.depth ?? 1) < 2, { timeoutMs: 60_000, what: 'an empty queue' })
    noFailures()
    const deepest = Math.max(...timeline.samples.map(({ depth }) => depth))
    assert.ok(deepest / JOBS_PER_WORKER > MAX_REPLICAS)
    return `${traffic.results.length} logins; decided after ${decided}, started after ${started}, ready after ${ready}; depth ${deepest}`
  })

  await step('drained, it scales in without one failed login', async () => {
    await settled(1, 180_000)
    const beforeClose = traffic.results.length
    traffic.setRate(0)
    await until(() => traffic.inFlight() === 0, { timeoutMs: 30_000, what: 'the last logins' })
    noFailures()
    return `${beforeClose} logins by now, none failed`
  })
  const endS = timeline.now()

  const held = accounts.slice(0, 4 * JOBS_PER_WORKER)
  let heldLogins: Promise<number> | undefined
  await step('a paused queue scales out by the jobs that wait in it, exactly, and runs none', async () => {
    await queue.pause()
    heldLogins = loginsSucceed(held, 'respond-async')
    heldLogins.catch(() => undefined)
    await settled(held.length / JOBS_PER_WORKER)
    await stays(held.length / JOBS_PER_WORKER, 1.5 * SYNC_MS)
    assert.equal(timeline.latest()?.depth, held.length)
    return `${held.length} jobs, ${held.length / JOBS_PER_WORKER} workers`
  })

  /** The processes of the workers: a pod that was started again shows as another. */
  const workers = (): string[] => kubelet.pods('worker').map(({ pod, pid }) => `${pod.metadata.name} ${pid}`)

  async function condition(path: string, wanted: string): Promise<string | undefined> {
    type Conditions = { status: { conditions?: { type: string; status: string }[] } }
    const { status } = await api.call<Conditions>('GET', path)
    return status.conditions?.find(({ type }) => type === wanted)?.status
  }

  await step('Redis away: the workers stay', async () => {
    const before = workers()
    await redis.takeAway()
    await stays(before.length, 4 * SYNC_MS)
    assert.deepEqual(workers(), before)
    // KEDA cannot even build its scaler, so it has nothing to fall back from: the autoscaler gets no metric, and holds.
    assert.equal(await condition(AUTOSCALER, 'ScalingActive'), 'False')
    await redis.bringBack()
    await until(async () => (await condition(AUTOSCALER, 'ScalingActive')) === 'True', {
      timeoutMs: 3 * SYNC_MS,
      what: 'an autoscaler that sees the queue again',
    })
    assert.deepEqual(workers(), before)
    return `${before.length} workers, the same processes, for ${(4 * SYNC_MS) / 1_000} s`
  })

  await step('Redis answers KEDA with errors: it falls back to the workers that there are', async () => {
    const before = workers()
    await redis.connection.call('ACL', 'SETUSER', KEDA_USER, '-eval')
    try {
      await until(async () => (await condition(SCALED_OBJECT, 'Fallback')) === 'True', {
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
    await heldLogins
    return `${held.length} logins`
  })

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

  await step('scaled to zero, every job wakes a worker', async () => {
    await installChart(kubectl, backends, url, ['autoscaling.minReplicas=0'])
    const wakingS: string[] = []
    for (let time = 0; time < 2; time += 1) {
      await settled(0, 180_000)
      wakingS.push(((await loginsSucceed([someone])) / 1_000).toFixed(1))
    }
    return `a single login took ${wakingS.join(' s and ')} s`
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

  await traffic.close()
  timeline.close()
  await queue.close()
  return { timeline: cut(timeline, spikeFrom, endS), endS }
}

/** The part of a timeline between two moments, which then starts at 0. */
function cut(timeline: Timeline, fromS: number, toS: number): Timeline {
  const within = <T extends { atS: number }>(all: T[]): T[] =>
    all.filter(({ atS }) => atS >= fromS && atS <= toS).map((one) => ({ ...one, atS: one.atS - fromS }))
  return { ...timeline, samples: within(timeline.samples), marks: within(timeline.marks) }
}
