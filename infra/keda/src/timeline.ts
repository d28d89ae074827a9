// The state of a run, sampled a few times a second: jobs and workers.
import type { Redis } from 'ioredis'
import type { KubernetesApi } from './api.ts'

interface Sample {
  /** Seconds since the timeline began. */
  atS: number
  /** Jobs waiting or running. */
  depth: number
  /** The workers that the deployment should have. */
  replicas: number
  ready: number
}

export interface DeploymentState {
  spec: { replicas: number }
  status: { replicas?: number; readyReplicas?: number }
}

interface TimelineOptions {
  api: KubernetesApi
  redis: Redis
  /** The keys that hold jobs: two lists and a sorted set. */
  keys: { waiting: string; deferred: string; active: string }
  deployment: string
}

const SAMPLE_MS = 250

/** Samples until it is closed. The depth keeps its last value while Redis is away. */
export class Timeline {
  readonly samples: Sample[] = []
  readonly #options: TimelineOptions
  readonly #startedAt = performance.now()
  readonly #timer = setInterval(() => void this.#sample(), SAMPLE_MS)
  #sampling = false

  constructor(options: TimelineOptions) {
    this.#options = options
  }

  now(): number {
    return (performance.now() - this.#startedAt) / 1_000
  }

  latest(): Sample | undefined {
    return this.samples.at(-1)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #sample(): Promise<void> {
    if (this.#sampling) return
    this.#sampling = true
    const { api, deployment } = this.#options
    // A reading that fails is left out: the next one is near.
    await Promise.all([api.call<DeploymentState>('GET', deployment), this.#depth()]).then(
      ([{ spec, status }, depth]) =>
        this.samples.push({ atS: this.now(), depth, replicas: spec.replicas, ready: status.readyReplicas ?? 0 }),
      () => undefined,
    )
    this.#sampling = false
  }

  async #depth(): Promise<number> {
    const { redis, keys } = this.#options
    const before = this.latest()?.depth ?? 0
    if (redis.status !== 'ready') return before
    const counts = [redis.llen(keys.waiting), redis.zcard(keys.deferred), redis.llen(keys.active)]
    return await Promise.all(counts).then(
      (all) => all.reduce((sum, count) => sum + count, 0),
      () => before,
    )
  }
}
