/**
 * A job that a request waits for, wherever it is: it is added to another Redis server when its own does not answer. Jobs are pure, so both
 * copies may be done; the first verdict is the answer, and the other copy is removed.
 */

import { withResolvers } from '@spillway/common/within'
import { PasswordClientError } from '../errors.js'
import type { Expectation, PendingJob } from '../wait/answers.js'
import type { QueueClient } from '../wait/one-queue.js'
import type { Verdict } from '../wire/job.js'

/** Where a job was added. */
export interface Placement {
  server: { id: string; client: QueueClient }
  pending: PendingJob
}

export interface MovingJob extends PendingJob {
  /** The Redis that has the job. */
  readonly server: Placement['server']
  /** Adds it elsewhere, unless that is under way. */
  move(): Promise<void>
}

export interface MovingJobOptions {
  placed: Placement
  /** Adds the job to another Redis server than this, for so many milliseconds. Undefined without another server. Never rejects. */
  placeElsewhere(than: Placement['server'], lifeMs: number): Promise<Placement | undefined>
  /** What is to be expected of a job there. */
  expectationOf(placement: Placement): Promise<Expectation>
  /** Called when a request begins to wait for the job, and when it ends. */
  held(job: MovingJob): void
  released(job: MovingJob): void
}

export function createMovingJob({
  placed,
  placeElsewhere,
  expectationOf,
  held,
  released,
}: MovingJobOptions): MovingJob {
  const placements = [placed]
  let current = placed
  let isMoving = false
  let follow: ((placement: Placement) => void) | undefined

  async function move(): Promise<void> {
    if (isMoving || follow === undefined) return
    isMoving = true
    const { server, pending } = current
    const next = await placeElsewhere(server, pending.job.deadline - server.client.now())
    isMoving = false
    if (next === undefined) return
    if (follow === undefined) return discard(next)
    void server.client.cancel(pending.job)
    current = next
    placements.push(next)
    follow(next)
  }

  async function firstAnswer(waitMs: number, signal: AbortSignal | undefined): Promise<Verdict | undefined> {
    const endsAt = performance.now() + waitMs
    const stop = new AbortController()
    const { promise: verdict, resolve } = withResolvers<Verdict | undefined>()
    const abort = () => stop.abort()
    signal?.addEventListener('abort', abort)
    if (signal?.aborted) abort()
    let open = 0
    follow = (placement) => {
      open += 1
      placement.pending
        .answer({ waitMs: Math.max(1, endsAt - performance.now()), signal: stop.signal })
        .catch(() => undefined)
        .then((answer) => {
          open -= 1
          if (answer !== undefined) current = placement
          if (answer !== undefined || open === 0) resolve(answer)
        })
    }
    follow(placed)
    const answer = await verdict
    follow = undefined
    signal?.removeEventListener('abort', abort)
    stop.abort()
    for (const { server, pending } of placements) if (server !== current.server) void server.client.cancel(pending.job)
    if (signal?.aborted && answer === undefined) throw new PasswordClientError('wait_aborted', 'the caller went away')
    return answer
  }

  const job: MovingJob = {
    get job() {
      return { ...current.pending.job, server: current.server.id }
    },
    get server() {
      return current.server
    },
    move,
    expectation: () => expectationOf(current),
    async answer({ waitMs, signal }) {
      if (waitMs === 0) return await placed.pending.answer({ waitMs, signal })
      held(job)
      try {
        return await firstAnswer(waitMs, signal)
      } finally {
        released(job)
      }
    },
  }
  return job
}

/** Ends a copy that nobody waits for. */
export function discard({ server, pending }: Placement): void {
  void pending.answer({ waitMs: 0 }).catch(() => undefined)
  void server.client.cancel(pending.job)
}
