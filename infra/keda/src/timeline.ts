// The state of a run, sampled a few times a second: jobs, workers, and how long logins take.
import { quantile } from '@spillway/local/rig/quantile'
import type { Redis } from 'ioredis'
import type { KubernetesApi } from './api.ts'
import type { LoginResult } from './logins.ts'

export interface Sample {
  /** Seconds since the timeline began. */
  atS: number
  /** Jobs waiting or running. */
  depth: number
  /** Workers that the deployment should have, and those that are ready. */
  replicas: number
  ready: number
  /** Of the logins that ended in the last few seconds, in milliseconds; undefined without any. */
  p99Ms: number | undefined
}

export interface Mark {
  atS: number
  text: string
}

export interface TimelineOptions {
  api: KubernetesApi
  redis: Redis
  /** The keys that hold jobs: two lists and a sorted set. */
  keys: { waiting: string; deferred: string; active: string }
  /** The path of the deployment of the workers. */
  deployment: string
  results: LoginResult[]
}

const SAMPLE_MS = 250
const WINDOW_MS = 3_000

export interface DeploymentState {
  spec: { replicas: number }
  status: { replicas?: number; readyReplicas?: number }
}

export type Timeline = ReturnType<typeof startTimeline>

/** Samples until it is closed. The depth stays as it was while Redis is away. */
export function startTimeline({ api, redis, keys, deployment, results }: TimelineOptions) {
  const startedAt = performance.now()
  const samples: Sample[] = []
  const marks: Mark[] = []
  const now = (): number => (performance.now() - startedAt) / 1_000
  let sampling = false

  async function depth(): Promise<number> {
    const before = samples.at(-1)?.depth ?? 0
    if (redis.status !== 'ready') return before
    const counts = [redis.llen(keys.waiting), redis.zcard(keys.deferred), redis.llen(keys.active)]
    return await Promise.all(counts).then(
      (all) => all.reduce((sum, count) => sum + count, 0),
      () => before,
    )
  }

  async function sample(): Promise<void> {
    if (sampling) return
    sampling = true
    const read = Promise.all([api.call<DeploymentState>('GET', deployment), depth()])
    // A reading that fails is left out: the next one is near.
    await read.then(
      ([{ spec, status }, depth]) => {
        const ready = status.readyReplicas ?? 0
        samples.push({ atS: now(), depth, replicas: spec.replicas, ready, p99Ms: p99Lately(results) })
      },
      () => undefined,
    )
    sampling = false
  }

  const timer = setInterval(() => void sample(), SAMPLE_MS)
  return {
    samples,
    marks,
    /** Seconds since it began. */
    now,
    mark: (text: string): void => void marks.push({ atS: now(), text }),
    latest: () => samples.at(-1),
    close: (): void => clearInterval(timer),
  }
}

/** The 99th percentile of the logins that ended lately. */
function p99Lately(results: LoginResult[]): number | undefined {
  const since = performance.now() - WINDOW_MS
  const first = results.findLastIndex(({ endedAt }) => endedAt < since) + 1
  return percentile99(results.slice(first))
}

/** The 99th percentile of the time that logins took, in milliseconds; undefined without any. */
export function percentile99(results: LoginResult[]): number | undefined {
  return quantile(
    results.map(({ startedAt, endedAt }) => endedAt - startedAt),
    0.99,
  )
}
