// What is seen over a run, a few times a second: jobs, workers and how long people wait.
import type { Redis } from 'ioredis'
import type { KubernetesApi } from './api.ts'
import type { LoginResult } from './logins.ts'

export interface Sample {
  /** Seconds since the timeline began. */
  atS: number
  /** Jobs waiting or running. */
  depth: number
  /** Workers that are asked for, and those that are ready. */
  replicas: number
  ready: number
  /** Of the logins that ended in the last few seconds, in milliseconds; undefined without any. */
  p99Ms: number | undefined
}

export interface Mark {
  atS: number
  text: string
}

export interface Timeline {
  samples: Sample[]
  marks: Mark[]
  /** Seconds since it began. */
  now(): number
  mark(text: string): void
  latest(): Sample | undefined
  close(): void
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

/** Samples until it is closed. What cannot be read at a moment is left out, or stays as it was. */
export function startTimeline({ api, redis, keys, deployment, results }: TimelineOptions): Timeline {
  const startedAt = performance.now()
  const samples: Sample[] = []
  const marks: Mark[] = []
  const now = (): number => (performance.now() - startedAt) / 1_000
  let sampling = false

  async function depthNow(): Promise<number> {
    const counts = [redis.llen(keys.waiting), redis.zcard(keys.deferred), redis.llen(keys.active)]
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
  }

  async function sample(): Promise<void> {
    if (sampling) return
    sampling = true
    try {
      const before = samples.at(-1)
      const [{ spec, status }, depth] = await Promise.all([
        api.call<DeploymentState>('GET', deployment),
        redis.status === 'ready' ? depthNow().catch(() => before?.depth ?? 0) : (before?.depth ?? 0),
      ])
      samples.push({
        atS: now(),
        depth,
        replicas: spec.replicas,
        ready: status.readyReplicas ?? 0,
        p99Ms: p99(results, performance.now()),
      })
    } catch {
      // The next sample is near.
    } finally {
      sampling = false
    }
  }

  const timer = setInterval(() => void sample(), SAMPLE_MS)
  return {
    samples,
    marks,
    now,
    mark: (text) => marks.push({ atS: now(), text }),
    latest: () => samples.at(-1),
    close: () => clearInterval(timer),
  }
}

/** The 99th percentile of what ended lately. */
function p99(results: LoginResult[], now: number): number | undefined {
  const lately: number[] = []
  for (let index = results.length - 1; index >= 0; index -= 1) {
    const result = results[index]
    if (result === undefined || result.endedAt < now - WINDOW_MS) break
    lately.push(result.endedAt - result.startedAt)
  }
  lately.sort((a, b) => a - b)
  return lately[Math.ceil(lately.length * 0.99) - 1]
}
