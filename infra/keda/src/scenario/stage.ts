// The tools of every step of the scenario: traffic, the timeline, and questions to the cluster.
import assert from 'node:assert/strict'
import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/infra/processes/until'
import { ask, redeemUntilAnswered } from '@spillway/infra/rig/api-client'
import { startLoop } from '@spillway/infra/rig/open-loop'
import type { ToldEta } from '@spillway/infra/rig/quantile'
import { createAccounts } from '@spillway/infra/services/query'
import { Queue } from 'bullmq'
import type { Environment } from '../environment.ts'
import { NAMESPACE } from '../installation.ts'
import { type DeploymentState, Timeline } from '../timeline.ts'

/** As in the values of this test. */
export const MAX_REPLICAS = 8
export const JOBS_PER_WORKER = 4
/** The period of the horizontal pod autoscaler. */
export const SYNC_MS = 15_000
export const HASH_MS = 250
/** Logins a second outside of spikes: half of what one worker does. */
export const ORDINARY_PER_SECOND = 2

const PASSWORD = 'whatever it is'
const QUEUE = '{spillway}:passwords'
export const jobKeys = { waiting: `${QUEUE}:wait`, deferred: `${QUEUE}:prioritized`, active: `${QUEUE}:active` }
const WORKERS = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/spillway-worker`
export const AUTOSCALER = `/apis/autoscaling/v2/namespaces/${NAMESPACE}/horizontalpodautoscalers/keda-hpa-spillway-worker`
export const SCALED_OBJECT = `/apis/keda.sh/v1alpha1/namespaces/${NAMESPACE}/scaledobjects/spillway-worker`

export type Stage = Awaited<ReturnType<typeof openStage>>

/** Opens it, without any traffic. */
export async function openStage(environment: Environment) {
  const { api, kubelet, databaseUrl, redis, gatewayUrl: url } = environment
  const accountsOf = (name: string, count: number, hashMs: number): Promise<string[]> =>
    createAccounts(databaseUrl, name, count, `$spillway-wait$${hashMs}$`)
  const accounts = await accountsOf('spike', 200, HASH_MS)
  const [slow = ''] = await accountsOf('slow', 1, 3_000)
  const traffic = startTraffic(url, accounts)
  const timeline = new Timeline({ api, redis: redis.connection, keys: jobKeys, deployment: WORKERS })
  const queue = queueAt(redis.url)
  const deployment = (): Promise<DeploymentState> => api.call<DeploymentState>('GET', WORKERS)
  return {
    environment,
    /** Accounts with an ordinary hash, and one whose hash takes 3 s. */
    accounts,
    slow,
    traffic,
    timeline,
    queue,
    replicas: async () => (await deployment()).spec.replicas,
    /** Resolves when the deployment wants and has so many ready workers, and no other is left. */
    async settled(count: number, timeoutMs = 180_000) {
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
    async trafficEnds(timeoutMs = 120_000) {
      traffic.setRate(0)
      await until(() => traffic.inFlight() === 0, { timeoutMs, what: 'the last logins' })
    },
    /** Resolves when the autoscaler can read the depth of the queue, or of each. */
    async autoscalerSees() {
      const isActive = async () => (await api.conditionOf(AUTOSCALER, 'ScalingActive')) === 'True'
      await until(isActive, { timeoutMs: 4 * SYNC_MS, what: 'an autoscaler that sees the queue' })
    },
    /** Logs in with all at once; returns the longest time in ms. Fails if a login does. */
    async loginsSucceed(emails: string[], prefer?: string) {
      const results = await Promise.all(emails.map((email) => logIn({ url, email, ...(prefer && { prefer }) })))
      noneFailed(results)
      return Math.max(...results.map(({ startedAt, endedAt }) => endedAt - startedAt))
    },
    /** The containers of the workers: a pod that was restarted shows as another. */
    workers: () => kubelet.pods('worker').map(({ containerName }) => containerName),
    async close() {
      await traffic.close()
      timeline.close()
      await queue.close()
    },
  }
}

export function queueAt(url: string): Queue {
  const queue = new Queue('passwords', { connection: { url }, prefix: '{spillway}' })
  queue.on('error', () => {})
  return queue
}

/** With less idle time than this, times say more about the machine than about Spillway. */
const IDLE_LEAST = 0.05

/** From its call on: whether the processors of this machine had time left, so that times can be judged. */
export function watchIdle(): () => boolean {
  const read = () => {
    const times = cpus().map((cpu) => cpu.times)
    const all = times.flatMap((one) => Object.values(one)).reduce((sum, ms) => sum + ms, 0)
    return { all, idle: times.reduce((sum, { idle }) => sum + idle, 0) }
  }
  const before = read()
  return () => {
    const now = read()
    return (now.idle - before.idle) / (now.all - before.all) >= IDLE_LEAST
  }
}

/** Fails when any of these logins has failed, or was sent away for a while. */
export function noneFailed(results: LoginResult[]): void {
  assert.deepEqual(
    results.filter(({ failure, sentAway }) => failure !== undefined || sentAway > 0),
    [],
  )
}

// Logins at a rate that does not depend on the answers; a ticket is redeemed until it is answered.

export interface LoginResult {
  /** Milliseconds of performance.now(). */
  startedAt: number
  endedAt: number
  /** How often it was refused as busy, and came back after Retry-After. */
  sentAway: number
  /** Whether its first answer after that was a ticket. */
  hadTicket: boolean
  /** Those that it was told, where it is watched. */
  etas: ToldEta[]
  /** The status and code of the last answer, where that was no success. */
  failure: string | undefined
}

interface LoginOptions {
  url: string
  email: string
  /** The value of the header Prefer: respond-async asks for a ticket at once. */
  prefer?: string
  /**
   * Redeems without a pause, held for a second each time, so that ETAs can be compared with the time of the answer. Other
   * clients come back when Retry-After says so: the answer may have been there before.
   */
  isWatched?: boolean
}

/** Longer than the whole test: Redis may be away for a minute. */
const PATIENCE_MS = 300_000
/** Of the traffic, one login of so many is watched. */
const WATCHED_EVERY = 8

/** Logs in, comes back when sent away, and redeems its ticket until answered. Never rejects. */
async function logIn({ url, email, prefer, isWatched = false }: LoginOptions): Promise<LoginResult> {
  const startedAt = performance.now()
  const headers = prefer === undefined ? {} : { prefer }
  const begin = () => ask(url, '/v1/login', { body: { email, password: PASSWORD }, headers, timeoutMs: PATIENCE_MS })
  let sentAway = 0
  let first = await begin()
  for (; first.body.code === 'busy' && performance.now() < startedAt + PATIENCE_MS; first = await begin()) {
    sentAway++
    await sleep(first.retryAfterMs)
  }
  const redeeming = isWatched ? { headers: { prefer: 'wait=1' } } : {}
  const etas: Omit<ToldEta, 'answeredAtMs'>[] = []
  const answer = await redeemUntilAnswered(first, {
    pauseMs({ body: { eta }, retryAfterMs }) {
      if (!isWatched || eta === undefined) return retryAfterMs
      etas.push({ atMs: performance.now(), etaMs: eta * 1_000 })
      return 0
    },
    redeem: (ticket) => ask(url, '/v1/tickets/redeem', { body: { ticket }, ...redeeming, timeoutMs: PATIENCE_MS }),
    // A ticket is good until it expires, whatever happens to Redis in between.
    goesOnAfter: [202, 503],
  })
  const failure = answer.status === 200 ? undefined : (answer.failure ?? `${answer.status} ${answer.body.code ?? ''}`)
  const endedAt = performance.now()
  const told = etas.map((eta) => ({ ...eta, answeredAtMs: endedAt }))
  return { startedAt, endedAt, sentAway, hadTicket: first.status === 202, etas: told, failure }
}

/** Starts logins of the accounts in turn, evenly spread. */
function startTraffic(url: string, accounts: string[]) {
  const results: LoginResult[] = []
  let rate = 0
  let turn = 0
  const loop = startLoop({
    rateAt: () => rate,
    async send() {
      const isWatched = turn % WATCHED_EVERY === 0
      results.push(await logIn({ url, email: accounts[turn++ % accounts.length] ?? '', isWatched }))
    },
  })
  return {
    /** The logins that have ended, in the order of ending. */
    results,
    inFlight: () => turn - results.length,
    /** Sets another rate, in logins a second; 0 pauses. */
    setRate(perSecond: number) {
      rate = perSecond
    },
    /** Sends no more logins, and resolves when all that were sent have ended. */
    close: () => loop.stop(),
  }
}
