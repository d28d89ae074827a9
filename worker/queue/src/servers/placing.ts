/** Adds jobs to the best Redis server of several, and to another when that does not take them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { PasswordClientError } from '../errors.js'
import type { JobName, Lane, Requests } from '../wire/job.js'
import { type OpenServer, TICK_MS } from './health.js'
import { discard, type Placement } from './moving-job.js'

/** How long adding a job is retried: several servers may fail in turn, and recover in a moment. */
const TRIED_FOR_MS = 2_000

export interface Work<Name extends JobName = JobName> {
  name: Name
  request: Requests[Name]
  lane: Lane
  waitMs: number
  requestId: string | undefined
}

export class Placing {
  readonly #servers: readonly OpenServer[]
  /** Jobs that are being added, by server. */
  readonly #adding = new Map<OpenServer, number>()

  constructor(servers: readonly OpenServer[]) {
    this.#servers = servers
  }

  /**
   * Adds a new job. Throws `queue_unavailable` when no server takes it: after one try of each where
   * no server was usable, else after some seconds.
   */
  async place(work: Work, lifeMs: number): Promise<Placement> {
    const endsAt = performance.now() + TRIED_FOR_MS
    // Asked before the job is tried: one that refuses it counts as not usable until its next probe.
    const wasAnyUsable = this.#isAnyUsable()
    for (;;) {
      try {
        return await this.#addToFirst(this.#inOrder(work.lane), work, lifeMs)
      } catch (error) {
        const isHopeless = !wasAnyUsable && !this.#isAnyUsable()
        if (!isUnavailable(error) || isHopeless || performance.now() > endsAt) throw error
        await sleep(TICK_MS)
      }
    }
  }

  /** Adds a job to a better server; undefined without one. Throws as `place` does. */
  async placeElsewhere(work: Work, than: OpenServer, lifeMs: number): Promise<Placement | undefined> {
    const candidates = this.#inOrder(work.lane).filter((other) => isBetter(other, than))
    return candidates.length === 0 ? undefined : await this.#addToFirst(candidates, work, lifeMs)
  }

  /** Whether there is one that is better for jobs than this one. */
  hasBetter(than: OpenServer): boolean {
    return this.#servers.some((other) => isBetter(other, than))
  }

  #isAnyUsable(): boolean {
    return this.#servers.some(({ draining, health }) => !draining && health.isUsable())
  }

  #inOrder(lane: Lane): OpenServer[] {
    const candidates = this.#servers
      .filter(({ draining }) => !draining)
      .map((server) => ({
        server,
        isUsable: server.health.isUsable(),
        waitMs: server.client.predictedWaitMs(lane),
        adding: this.#adding.get(server) ?? 0,
      }))
    return orderOf(candidates).map(({ server }) => server)
  }

  /** Adds a job to the first of these that takes it. */
  async #addToFirst(candidates: readonly OpenServer[], work: Work, lifeMs: number): Promise<Placement> {
    const [next, ...others] = candidates
    if (next === undefined) throw new PasswordClientError('queue_unavailable', 'no Redis server can take the job')
    try {
      return await this.#addTo(next, work, lifeMs)
    } catch (error) {
      if (others.length === 0 || !isUnavailable(error)) throw error
      return await this.#addToFirst(others, work, lifeMs)
    }
  }

  /** Throws `queue_unavailable` when it refuses, or is given up because another one answers. */
  async #addTo(server: OpenServer, { name, request, ...work }: Work, lifeMs: number): Promise<Placement> {
    this.#countAdding(server, 1)
    const added = server.client
      .submit(name, request, { ...work, lifeMs })
      .catch((error: unknown) => {
        if (isUnavailable(error)) server.health.refused()
        throw error
      })
      .finally(() => this.#countAdding(server, -1))
    const givingUp = whenMet(() => server.health.isOut() && this.hasBetter(server))
    try {
      const pending = await Promise.race([added, givingUp.promise])
      if (pending !== undefined) return { server, pending }
    } finally {
      givingUp.stop()
    }
    // A copy that was added after all is taken back.
    added.then(
      (pending) => discard({ server, pending }),
      () => undefined,
    )
    throw new PasswordClientError('queue_unavailable', 'Redis does not answer')
  }

  #countAdding(server: OpenServer, change: 1 | -1): void {
    this.#adding.set(server, (this.#adding.get(server) ?? 0) + change)
  }
}

/** While its own Redis answers, a job is moved only to where workers take it. */
function isBetter(other: OpenServer, than: OpenServer): boolean {
  if (other === than || other.draining) return false
  return than.health.isUsable() ? other.health.isServed() : other.health.isUsable()
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof PasswordClientError && error.code === 'queue_unavailable'
}

/** Resolves once the condition is met, which is looked at every tick until it is stopped. */
function whenMet(isMet: () => boolean): { promise: Promise<undefined>; stop(): void } {
  let timer: NodeJS.Timeout | undefined
  const promise = new Promise<undefined>((resolve) => {
    timer = setInterval(() => isMet() && resolve(undefined), TICK_MS)
  })
  return { promise, stop: () => clearInterval(timer) }
}

export interface Candidate {
  isUsable: boolean
  /** Predicted, in milliseconds; Infinity where no worker is alive. */
  waitMs: number
  /** Jobs that this client is adding: more where the Redis server itself is slow. */
  adding: number
}

/**
 * The order in which servers are tried: the better of two random ones (the power of two choices:
 * Mitzenmacher 2001), so gateways that read the same depth spread; then the others, the best first.
 * A server is better by a shorter wait, then by fewer jobs being added. Unusable ones come last.
 */
export function orderOf<C extends Candidate>(candidates: readonly C[], random: () => number = Math.random): C[] {
  const ranked = shuffled(candidates, random).sort(compare)
  const served = ranked.filter(({ isUsable, waitMs }) => isUsable && Number.isFinite(waitMs))
  const [one, two] = shuffled(served, random)
  if (one === undefined || two === undefined) return ranked
  const chosen = compare(two, one) < 0 ? two : one
  return [chosen, ...ranked.filter((candidate) => candidate !== chosen)]
}

function compare(a: Candidate, b: Candidate): number {
  if (a.isUsable !== b.isUsable) return a.isUsable ? -1 : 1
  return a.waitMs === b.waitMs ? a.adding - b.adding : a.waitMs - b.waitMs
}

/** Fisher and Yates. */
function shuffled<T>(all: readonly T[], random: () => number): T[] {
  const left = [...all]
  return all.flatMap(() => left.splice(Math.floor(random() * left.length), 1))
}
