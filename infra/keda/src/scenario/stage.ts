// What every step of the scenario works with: the people who log in, the timeline, and questions to the cluster.
import assert from 'node:assert/strict'
import { until } from '@spillway/local/processes/until'
import { Queue } from 'bullmq'
import { createAccounts, type Environment } from '../environment.ts'
import { NAMESPACE } from '../installation.ts'
import { logIn, startTraffic, type Traffic } from '../logins.ts'
import { type DeploymentState, startTimeline, type Timeline } from '../timeline.ts'

/** As in the values of this test. */
export const MAX_REPLICAS = 8
export const JOBS_PER_WORKER = 4
/** How often the cluster's autoscaler looks. */
export const SYNC_MS = 15_000
/** How long the hash of an ordinary login takes. */
export const HASH_MS = 250

const PASSWORD = 'whatever it is'
const QUEUE = '{spillway}:passwords'
export const jobKeys = { waiting: `${QUEUE}:wait`, deferred: `${QUEUE}:prioritized`, active: `${QUEUE}:active` }
const WORKERS = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/spillway-worker`
export const AUTOSCALER = `/apis/autoscaling/v2/namespaces/${NAMESPACE}/horizontalpodautoscalers/keda-hpa-spillway-worker`
export const SCALED_OBJECT = `/apis/keda.sh/v1alpha1/namespaces/${NAMESPACE}/scaledobjects/spillway-worker`

export interface Stage {
  environment: Environment
  /** Accounts with an ordinary hash, and one whose hash takes 3 s. */
  accounts: string[]
  slow: string
  traffic: Traffic
  timeline: Timeline
  queue: Queue
  /** How many workers are asked for. */
  replicas(): Promise<number>
  /** Resolves when as many workers are asked for and ready, and none beside them is left. */
  settled(count: number, timeoutMs?: number): Promise<void>
  /** Fails when another number of workers is asked for within this time. */
  stays(count: number, forMs: number): Promise<void>
  /** Logs in with all of these at once, and gives the time that the slowest took in milliseconds. Fails with the first that fails. */
  loginsSucceed(emails: string[], prefer?: string): Promise<number>
  /** Fails when any login of the traffic has failed so far. */
  noFailures(): void
  /** The processes of the workers: a pod that was started again shows as another. */
  workers(): string[]
  /** The status of a condition of an object. */
  condition(path: string, type: string): Promise<string | undefined>
  close(): Promise<void>
}

/** Opens it; nobody logs in yet. */
export async function openStage(environment: Environment): Promise<Stage> {
  const { controlPlane, kubelet, backends, redis, gateway } = environment
  const { api } = controlPlane
  const url = gateway.url
  const accounts = await createAccounts(backends.databaseUrl, 'spike', 200, HASH_MS)
  const [slow = ''] = await createAccounts(backends.databaseUrl, 'slow', 1, 3_000)
  const traffic = startTraffic({ url, password: PASSWORD, accounts })
  const timeline = startTimeline({
    api,
    redis: redis.connection,
    keys: jobKeys,
    deployment: WORKERS,
    results: traffic.results,
  })
  const queue = new Queue('passwords', {
    connection: { url: `redis://:${backends.redisPassword}@${backends.redisAddress}` },
    prefix: '{spillway}',
  })
  queue.on('error', () => {})
  return {
    environment,
    accounts,
    slow,
    traffic,
    timeline,
    queue,
    async replicas() {
      return (await api.call<DeploymentState>('GET', WORKERS)).spec.replicas
    },
    async settled(count, timeoutMs = 90_000) {
      const isSettled = async (): Promise<boolean> => {
        const { spec, status } = await api.call<DeploymentState>('GET', WORKERS)
        const all = [spec.replicas, status.readyReplicas ?? 0, kubelet.pods('worker').length]
        return all.every((one) => one === count)
      }
      await until(isSettled, { timeoutMs, what: `${count} workers` })
    },
    async stays(count, forMs) {
      const from = timeline.now()
      await until(() => timeline.now() > from + forMs / 1_000, { timeoutMs: forMs + 5_000 })
      const seen = new Set(timeline.samples.filter(({ atS }) => atS > from).map((sample) => sample.replicas))
      assert.deepEqual([...seen], [count])
    },
    async loginsSucceed(emails, prefer) {
      const options = { url, password: PASSWORD, ...(prefer === undefined ? {} : { prefer }) }
      const results = await Promise.all(emails.map((email) => logIn({ ...options, email })))
      const failed = results.filter(({ failure }) => failure !== undefined)
      assert.deepEqual(failed, [])
      return Math.max(...results.map(({ startedAt, endedAt }) => endedAt - startedAt))
    },
    noFailures() {
      const failed = traffic.results.filter(({ failure }) => failure !== undefined)
      assert.deepEqual(failed, [])
    },
    workers: () => kubelet.pods('worker').map(({ pod, pid }) => `${pod.metadata.name} ${pid}`),
    async condition(path, wanted) {
      type Conditions = { status: { conditions?: { type: string; status: string }[] } }
      const { status } = await api.call<Conditions>('GET', path)
      return status.conditions?.find(({ type }) => type === wanted)?.status
    },
    async close() {
      await traffic.close()
      timeline.close()
      await queue.close()
    },
  }
}
