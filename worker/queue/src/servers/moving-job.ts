/**
 * A job that a request waits for: it is added to another Redis server when its own does not answer.
 * Jobs are pure, so both copies may be done; the first verdict is the answer.
 */

import { withResolvers } from '@spillway/common/within'
import { PasswordClientError } from '../errors.js'
import type { Expectation, PendingJob } from '../wait/answers.js'
import type { Verdict } from '../wire/job.js'
import type { JobRef } from '../wire/reply.js'
import type { OpenServer } from './health.js'

export interface Placement {
  server: OpenServer
  pending: PendingJob
}

interface MovingJobOptions {
  placed: Placement
  /** Adds the job to another server, for so many milliseconds, if there is one. Never rejects. */
  placeElsewhere(than: OpenServer, lifeMs: number): Promise<Placement | undefined>
  /** What is to be expected of a job there. */
  expectationOf(placement: Placement): Promise<Expectation>
  /** The jobs that requests wait for: this one is among them while it is. */
  held: Set<MovingJob>
}

export class MovingJob implements PendingJob {
  readonly #options: MovingJobOptions
  readonly #placements: Placement[]
  #current: Placement
  #isMoving = false
  /** While a request waits: waits for the answer of a further copy, too. */
  #follow: ((placement: Placement) => void) | undefined

  constructor(options: MovingJobOptions) {
    this.#options = options
    this.#current = options.placed
    this.#placements = [options.placed]
  }

  get job(): JobRef {
    return { ...this.#current.pending.job, server: this.server.id }
  }

  /** The Redis server that has the job. */
  get server(): OpenServer {
    return this.#current.server
  }

  expectation(): Promise<Expectation> {
    return this.#options.expectationOf(this.#current)
  }

  async answer({ waitMs, signal }: Parameters<PendingJob['answer']>[0]): Promise<Verdict | undefined> {
    const { placed, held } = this.#options
    if (waitMs === 0) return await placed.pending.answer({ waitMs, signal })
    held.add(this)
    try {
      return await this.#firstAnswer(waitMs, signal)
    } finally {
      held.delete(this)
    }
  }

  /** Adds it elsewhere, unless that is under way. */
  async move(): Promise<void> {
    if (this.#isMoving || this.#follow === undefined) return
    this.#isMoving = true
    const { server, pending } = this.#current
    const next = await this.#options.placeElsewhere(server, pending.job.deadline - server.client.now())
    this.#isMoving = false
    if (next === undefined) return
    if (this.#follow === undefined) return discard(next)
    void server.client.cancel(pending.job)
    this.#current = next
    this.#placements.push(next)
    this.#follow(next)
  }

  async #firstAnswer(waitMs: number, signal: AbortSignal | undefined): Promise<Verdict | undefined> {
    const endsAt = performance.now() + waitMs
    const stop = new AbortController()
    const { promise: verdict, resolve } = withResolvers<Verdict | undefined>()
    const abort = () => stop.abort()
    signal?.addEventListener('abort', abort)
    if (signal?.aborted) abort()
    let open = 0
    this.#follow = (placement) => {
      open += 1
      placement.pending
        .answer({ waitMs: Math.max(1, endsAt - performance.now()), signal: stop.signal })
        .catch(() => undefined)
        .then((answer) => {
          open -= 1
          if (answer !== undefined) this.#current = placement
          if (answer !== undefined || open === 0) resolve(answer)
        })
    }
    this.#follow(this.#options.placed)
    const answer = await verdict
    this.#follow = undefined
    signal?.removeEventListener('abort', abort)
    stop.abort()
    for (const { server, pending } of this.#placements)
      if (server !== this.server) void server.client.cancel(pending.job)
    if (signal?.aborted && answer === undefined) throw new PasswordClientError('wait_aborted', 'the caller went away')
    return answer
  }
}

/** Ends a copy that nobody waits for. */
export function discard({ server, pending }: Placement): void {
  void pending.answer({ waitMs: 0 }).catch(() => undefined)
  void server.client.cancel(pending.job)
}
