/**
 * The client of a queue in several Redis servers. Each job goes to one, which its ticket names. A
 * server that does not answer, or refuses writes, gets none; those waited for are added elsewhere.
 */

import type { RedisServers } from '../redis/servers.js'
import type { Expectation, PendingJob, ResumedJob } from '../wait/answers.js'
import { type Line, LineCapacity, predictWaitMs } from '../wait/load-state.js'
import type { QueueClient } from '../wait/one-queue.js'
import type { PasswordClient, QueueClientOptions, SubmitOptions } from '../wait/password-client.js'
import { type Depth, type Load, sumCapacity, type TotalCapacity, type WorkerCapacity } from '../wire/capacity.js'
import type { JobName, Lane, Requests } from '../wire/job.js'
import type { JobRef } from '../wire/reply.js'
import { type OpenServer, openServer, TICK_MS } from './health.js'
import { MovingJob, type Placement } from './moving-job.js'
import { isUnavailable, Placing, type Work } from './placing.js'

/** After a Redis server has been unusable for this long, the tickets of its jobs count as lost. */
const LOST_AFTER_MS = 5_000

export class SeveralServersClient implements PasswordClient {
  readonly redis: PasswordClient['redis']
  readonly #options: QueueClientOptions
  readonly #first: OpenServer
  readonly #servers: readonly OpenServer[]
  readonly #load: SharedLoad
  readonly #placing: Placing
  /** Jobs that requests wait for. */
  readonly #held = new Set<MovingJob>()
  readonly #timer: NodeJS.Timeout

  constructor([first, ...others]: RedisServers, options: QueueClientOptions) {
    this.#options = options
    this.#first = openServer(first, options)
    this.#servers = [this.#first, ...others.map((server) => openServer(server, options))]
    this.#load = new SharedLoad(this.#servers.map(({ client }) => client))
    this.#placing = new Placing(this.#servers)
    this.redis = this.#servers.flatMap(({ client, health }) =>
      client.redis.map((redis) => ({ ...redis, isUsable: () => health.isUsable() })),
    )
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref()
  }

  async submit<Name extends JobName>(
    name: Name,
    request: Requests[Name],
    { lane = 'held', lifeMs = this.#options.jobLifeMs, waitMs = lifeMs, requestId }: SubmitOptions = {},
  ): Promise<PendingJob> {
    const work: Work = { name, request, lane, waitMs, requestId }
    return new MovingJob({
      placed: await this.#placing.place(work, lifeMs),
      placeElsewhere: (than, leftMs) => this.#placeElsewhere(work, than, leftMs),
      expectationOf: (placement) => this.#expectationOf(placement),
      held: this.#held,
    })
  }

  async resume(job: JobRef, waitMs?: number, isPresent?: boolean): Promise<ResumedJob> {
    const server = this.#serverOf(job)
    // Another gateway may know it, and a Redis server may be back in a moment: until its deadline
    // the answer may still come.
    if (server === undefined) return this.#unanswered(job, false)
    const { client, health } = server
    if (!health.isUsable())
      return this.#unanswered(job, this.#placing.hasBetter(server) && health.unusableMs() > LOST_AFTER_MS)
    try {
      const pending = await client.resume(job, waitMs, isPresent)
      return { ...pending, job, expectation: () => this.#expectationOf({ server, pending }) }
    } catch (error) {
      if (!isUnavailable(error)) throw error
      health.refused()
      return this.#unanswered(job, false)
    }
  }

  async cancel(job: JobRef): Promise<boolean> {
    return (await this.#serverOf(job)?.client.cancel(job)) ?? false
  }

  async left(job: JobRef): Promise<void> {
    await this.#serverOf(job)?.client.left(job)
  }

  line(job: JobRef): Line {
    return (this.#serverOf(job) ?? this.#first).client.line()
  }

  whenKnown(waitMs: number): Promise<void> {
    return Promise.race(this.#servers.map(({ client }) => client.whenKnown(waitMs)))
  }

  load(): Load {
    return this.#load.current()
  }

  finishedJobs(): number {
    return this.#servers.reduce((sum, { client }) => sum + client.finishedJobs(), 0)
  }

  hasOtherKeys(): boolean {
    const withWorkers = this.#servers.filter(({ client }) => client.reader.workers().size > 0)
    return withWorkers.length > 0 && withWorkers.every(({ client }) => client.hasOtherKeys())
  }

  predictedWaitMs(lane: Lane): number {
    return predictWaitMs(this.load(), lane)
  }

  now(job?: JobRef): number {
    return ((job && this.#serverOf(job)) ?? this.#first).client.now()
  }

  isReady(): boolean {
    return this.#servers.some(({ client }) => client.isReady())
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#servers.map(({ client }) => client.close()))
  }

  #serverOf({ server: id }: JobRef): OpenServer | undefined {
    return id === undefined ? this.#first : this.#servers.find((server) => server.id === id)
  }

  /** Moves jobs that requests wait for from servers that are out. */
  #tick(): void {
    for (const { health } of this.#servers) health.tick()
    const left = new Set(this.#servers.filter((server) => server.health.isOut() && this.#placing.hasBetter(server)))
    if (left.size > 0) for (const job of this.#held) if (left.has(job.server)) void job.move()
  }

  async #placeElsewhere(work: Work, than: OpenServer, lifeMs: number): Promise<Placement | undefined> {
    if (lifeMs <= 0) return undefined
    const { observer, log } = this.#options
    try {
      const placement = await this.#placing.placeElsewhere(work, than, Math.ceil(lifeMs))
      if (placement !== undefined) observer?.jobMoved?.()
      return placement
    } catch (error) {
      log.debug({ err: error }, 'a job could not be moved to another Redis')
      return undefined
    }
  }

  /** Workers divide their slots among the queues: what one queue expects is scaled to all. */
  async #expectationOf({ server, pending }: Placement): Promise<Expectation> {
    const { ahead, waitMs, number } = await pending.expectation()
    const [all, own] = [this.load(), server.client.load()]
    const jobs = Math.max(1, outstanding(all) / outstanding(own))
    const slower = jobs * (own.jobsPerSecond / (all.jobsPerSecond || own.jobsPerSecond || 1))
    return {
      ahead: ahead === undefined ? undefined : Math.round(ahead * jobs),
      waitMs: waitMs * Math.max(1, slower),
      number,
    }
  }

  /** A job whose answer cannot be had here now. */
  #unanswered(job: JobRef, isLost: boolean): ResumedJob {
    return {
      ...{ job, isLost },
      answer: async () => undefined,
      expectation: async () => ({ ahead: undefined, waitMs: this.predictedWaitMs('deferred'), number: undefined }),
    }
  }
}

/** At least one. */
function outstanding({ waiting, deferred, active }: Load): number {
  return Math.max(1, waiting + deferred + active)
}

/** The load of all together: jobs add up, and a worker that takes from several counts once. */
class SharedLoad {
  readonly #clients: readonly QueueClient[]
  readonly #line = new LineCapacity()
  /** The sum of capacities, until one of them is read again. */
  #summed: { of: ReadonlyMap<string, WorkerCapacity>[]; capacity: TotalCapacity } | undefined

  constructor(clients: readonly QueueClient[]) {
    this.#clients = clients
  }

  current(): Load {
    const known = this.#clients
      .map((client) => ({ load: client.load(), workers: client.reader.workers() }))
      .filter(({ load }) => load.known)
    const capacity = this.#sumOf(known.map(({ workers }) => workers))
    this.#line.observe(capacity.linePerSecond)
    const sum = (part: Exclude<keyof Depth, 'paused'>) => known.reduce((total, { load }) => total + load[part], 0)
    return {
      known: known.length > 0,
      // New jobs go to a queue that is not paused.
      paused: known.length > 0 && known.every(({ load }) => load.paused),
      ...{ waiting: sum('waiting'), deferred: sum('deferred'), active: sum('active'), absent: sum('absent') },
      ...{ returned: sum('returned'), aheadOfKnown: sum('aheadOfKnown') },
      ...capacity,
      linePerSecond: this.#line.current(),
    }
  }

  /** Each reading gives a new map. */
  #sumOf(of: ReadonlyMap<string, WorkerCapacity>[]): TotalCapacity {
    const summed = this.#summed
    const isSame = summed !== undefined && of.length === summed.of.length && of.every((map, n) => map === summed.of[n])
    if (isSame) return summed.capacity
    const capacity = sumCapacity(new Map(of.flatMap((map) => [...map])))
    this.#summed = { of, capacity }
    return capacity
  }
}
