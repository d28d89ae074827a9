// The tools of every step of the scenario: traffic, the timeline, and questions to the cluster.
import assert from 'node:assert/strict'
import { until } from '@spillway/local/processes/until'
import { createAccounts } from '@spillway/local/services/query'
import { Queue } from 'bullmq'
import { conditionOf } from '../api.ts'
import type { Environment } from '../environment.ts'
import { NAMESPACE } from '../installation.ts'
import { type LoginResult, logIn, startTraffic } from '../logins.ts'
import { type DeploymentState, startTimeline } from '../timeline.ts'

/** As in the values of this test. */
export const MAX_REPLICAS = 8
export const JOBS_PER_WORKER = 4
/** The period of the horizontal pod autoscaler. */
export const SYNC_MS = 15_000
/** How long the hash of an ordinary login takes. */
export const HASH_MS = 250

const PASSWORD = 'whatever it is'
const QUEUE = '{spillway}:passwords'
export const jobKeys = { waiting: `${QUEUE}:wait`, deferred: `${QUEUE}:prioritized`, active: `${QUEUE}:active` }
const WORKERS = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/spillway-worker`
export const AUTOSCALER = `/apis/autoscaling/v2/namespaces/${NAMESPACE}/horizontalpodautoscalers/keda-hpa-spillway-worker`
export const SCALED_OBJECT = `/apis/keda.sh/v1alpha1/namespaces/${NAMESPACE}/scaledobjects/spillway-worker`

export type Stage = Awaited<ReturnType<typeof openStage>>

/** Opens it, without any traffic. */
export async function openStage(environment: Environment) {
  const { api, kubelet, backends, redis, gatewayUrl: url } = environment
  const accountsOf = (name: string, count: number, hashMs: number): Promise<string[]> =>
    createAccounts(backends.databaseUrl, name, count, `$spillway-wait$${hashMs}$`)
  const accounts = await accountsOf('spike', 200, HASH_MS)
  const [slow = ''] = await accountsOf('slow', 1, 3_000)
  const traffic = startTraffic(url, PASSWORD, accounts)
  const { connection, address } = redis
  const timeline = startTimeline({
    api,
    redis: connection,
    keys: jobKeys,
    deployment: WORKERS,
    results: traffic.results,
  })
  const queue = queueAt(address, backends.redisPassword)
  const deployment = (): Promise<DeploymentState> => api.call<DeploymentState>('GET', WORKERS)
  return {
    environment,
    /** Accounts with an ordinary hash, and one whose hash takes 3 s. */
    accounts,
    slow,
    traffic,
    timeline,
    queue,
    /** How many workers the deployment should have. */
    replicas: async () => (await deployment()).spec.replicas,
    /** Resolves when the deployment should have so many workers, all are ready, and no other is left. */
    async settled(count: number, timeoutMs = 90_000) {
      const isSettled = async (): Promise<boolean> => {
        const { spec, status } = await deployment()
        const all = [spec.replicas, status.readyReplicas ?? 0, kubelet.pods('worker').length]
        return all.every((one) => one === count)
      }
      await until(isSettled, { timeoutMs, what: `${count} workers` })
    },
    /** Fails when the deployment should have another number of workers within this time. */
    async stays(count: number, forMs: number) {
      const from = timeline.now()
      await until(() => timeline.now() > from + forMs / 1_000, { timeoutMs: forMs + 5_000 })
      const seen = new Set(timeline.samples.filter(({ atS }) => atS > from).map((sample) => sample.replicas))
      assert.deepEqual([...seen], [count])
    },
    /** Ends the traffic, and resolves when its last login has been answered. */
    async trafficEnds() {
      traffic.setRate(0)
      await until(() => traffic.inFlight() === 0, { timeoutMs: 30_000, what: 'the last logins' })
    },
    /** Resolves when the autoscaler can read the depth of the queue, or of each. */
    async autoscalerSees() {
      const isActive = async () => (await conditionOf(api, AUTOSCALER, 'ScalingActive')) === 'True'
      await until(isActive, { timeoutMs: 4 * SYNC_MS, what: 'an autoscaler that sees the queue' })
    },
    /** Logs in with all of these at once, and returns the longest time in milliseconds. Fails if any login does. */
    async loginsSucceed(emails: string[], prefer?: string) {
      const options = { url, password: PASSWORD, ...(prefer === undefined ? {} : { prefer }) }
      const results = await Promise.all(emails.map((email) => logIn({ ...options, email })))
      noneFailed(results)
      return Math.max(...results.map(({ startedAt, endedAt }) => endedAt - startedAt))
    },
    /** The processes of the workers: a pod that was restarted shows as another. */
    workers: () => kubelet.pods('worker').map(({ pod, pid }) => `${pod.metadata.name} ${pid}`),
    async close() {
      await traffic.close()
      timeline.close()
      await queue.close()
    },
  }
}

/** The queue at an address, host:port. */
export function queueAt(address: string, password: string): Queue {
  const queue = new Queue('passwords', { connection: { url: `redis://:${password}@${address}` }, prefix: '{spillway}' })
  queue.on('error', () => {})
  return queue
}

/** Fails when any of these logins has failed. */
export function noneFailed(results: LoginResult[]): void {
  assert.deepEqual(
    results.filter(({ failure }) => failure !== undefined),
    [],
  )
}
