/**
 * The client of a queue in several Redis servers. Each job goes to one of them, which its ref and so its ticket name. A Redis server that does not
 * answer, or refuses writes, gets no new jobs until it does again; jobs that requests wait for are added elsewhere.
 */

import type { RedisServers } from '../redis/servers.js'
import type { Expectation, PendingJob, ResumedJob } from '../wait/answers.js'
import { createLineCapacity, predictWaitMs } from '../wait/load-state.js'
import type { PasswordClient, QueueClientOptions } from '../wait/password-client.js'
import { type Load, sumCapacity, type WorkerCapacity } from '../wire/capacity.js'
import type { JobRef } from '../wire/reply.js'
import { TICK_MS } from './health.js'
import { createMovingJob, discard, type MovingJob, type Placement } from './moving-job.js'
import { createPlacing, isUnavailable, type OpenServer, openServer, type Work } from './placing.js'

/** After a Redis server has been unusable for this long, the tickets of its jobs count as lost. */
const LOST_AFTER_MS = 5_000

interface Expecting {
  server: Placement['server']
  pending: Pick<PendingJob, 'expectation'>
}

export function createSeveralServersClient(list: RedisServers, options: QueueClientOptions): PasswordClient {
  const { jobLifeMs, log, observer } = options
  const [first, ...others] = list
  const firstServer = openServer(first, options)
  const servers = [firstServer, ...others.map((server) => openServer(server, options))]
  const load = createSharedLoad(servers.map(({ client }) => client))
  const placing = createPlacing(servers, discard)
  const held = new Set<MovingJob>()

  const byId = (id: string): OpenServer | undefined => servers.find((server) => server.id === id)
  const serverOf = ({ server }: JobRef): OpenServer | undefined => (server === undefined ? firstServer : byId(server))

  const timer = setInterval(() => {
    for (const { health } of servers) health.tick()
    const left = new Set(
      servers.filter((server) => server.health.isOut() && placing.hasBetter(server)).map(({ id }) => id),
    )
    if (left.size > 0) for (const job of held) if (left.has(job.server.id)) void job.move()
  }, TICK_MS)
  timer.unref()

  async function placeElsewhere(work: Work, than: Placement['server'], lifeMs: number): Promise<Placement | undefined> {
    if (lifeMs <= 0) return undefined
    try {
      const placement = await placing.placeElsewhere(work, byId(than.id), Math.ceil(lifeMs))
      if (placement !== undefined) observer?.jobMoved?.()
      return placement
    } catch (error) {
      log.debug({ err: error }, 'a job could not be moved to another Redis')
      return undefined
    }
  }

  /** Workers divide their slots among the queues, so the expectation of one queue is scaled to all of them. */
  async function expectationOf({ server, pending }: Expecting): Promise<Expectation> {
    const { ahead, waitMs, number } = await pending.expectation()
    const [all, own] = [load(), server.client.load()]
    const jobs = Math.max(1, outstanding(all) / outstanding(own))
    const slower = jobs * (own.jobsPerSecond / (all.jobsPerSecond || own.jobsPerSecond || 1))
    return {
      ahead: ahead === undefined ? undefined : Math.round(ahead * jobs),
      waitMs: waitMs * Math.max(1, slower),
      number,
    }
  }

  /** A job whose answer cannot be had here now. */
  function unanswered(job: JobRef, isLost: boolean): ResumedJob {
    return {
      ...{ job, isLost },
      answer: async () => undefined,
      expectation: async () => ({ ahead: undefined, waitMs: predictWaitMs(load(), 'deferred'), number: undefined }),
    }
  }

  return {
    async submit(name, request, lane = 'held', lifeMs = jobLifeMs, waitMs = lifeMs) {
      const work: Work = { name, request, lane, waitMs }
      return createMovingJob({
        placed: await placing.place(work, lifeMs),
        placeElsewhere: (than, leftMs) => placeElsewhere(work, than, leftMs),
        expectationOf,
        held: (job) => held.add(job),
        released: (job) => held.delete(job),
      })
    },
    async resume(job, waitMs, isPresent) {
      const server = serverOf(job)
      // Another gateway may know it, and a Redis server may be back in a moment: until its deadline the answer may still come.
      if (server === undefined) return unanswered(job, false)
      if (!server.health.isUsable())
        return unanswered(job, placing.hasBetter(server) && server.health.unusableMs() > LOST_AFTER_MS)
      try {
        const pending = await server.client.resume(job, waitMs, isPresent)
        return { ...pending, job, expectation: () => expectationOf({ server, pending }) }
      } catch (error) {
        if (!isUnavailable(error)) throw error
        server.health.refused()
        return unanswered(job, false)
      }
    },
    cancel: async (job) => (await serverOf(job)?.client.cancel(job)) ?? false,
    left: async (job) => await serverOf(job)?.client.left(job),
    line: (job) => (serverOf(job) ?? firstServer).client.line(),
    whenKnown: (waitMs) => Promise.race(servers.map(({ client }) => client.whenKnown(waitMs))),
    load,
    finishedJobs: () => servers.reduce((sum, { client }) => sum + client.finishedJobs(), 0),
    hasOtherKeys() {
      const withWorkers = servers.filter(({ client }) => client.workers().size > 0)
      return withWorkers.length > 0 && withWorkers.every(({ client }) => client.hasOtherKeys())
    },
    predictedWaitMs: (lane) => predictWaitMs(load(), lane),
    now: (job) => ((job && serverOf(job)) ?? firstServer).client.now(),
    isReady: () => servers.some(({ client }) => client.isReady()),
    redis: servers.flatMap(({ client, health }) =>
      client.redis.map((redis) => ({ ...redis, isUsable: health.isUsable })),
    ),
    async close() {
      clearInterval(timer)
      await Promise.all(servers.map(({ client }) => client.close()))
    },
  }
}

/** At least one. */
function outstanding({ waiting, deferred, active }: Load): number {
  return Math.max(1, waiting + deferred + active)
}

/** The load of several Redis servers together: jobs add up, and a worker that takes from several counts once. */
interface ServerLoad {
  load(): Load
  /** A new map at each reading. */
  workers(): ReadonlyMap<string, WorkerCapacity>
}

/** Returns how to add up the known loads; the sum of capacities is kept until one of them is read again. */
function createSharedLoad(servers: readonly ServerLoad[]): () => Load {
  const line = createLineCapacity()
  let summed: { of: ReadonlyMap<string, WorkerCapacity>[]; capacity: ReturnType<typeof sumCapacity> } | undefined

  return () => {
    const known = servers
      .map((server) => ({ load: server.load(), workers: server.workers() }))
      .filter(({ load }) => load.known)
    const of = known.map(({ workers }) => workers)
    const isSame = summed !== undefined && of.length === summed.of.length && of.every((map, n) => map === summed?.of[n])
    if (!isSame || summed === undefined) summed = { of, capacity: sumCapacity(new Map(of.flatMap((map) => [...map]))) }
    line.observe(summed.capacity.linePerSecond)
    const sum = (part: 'waiting' | 'deferred' | 'active' | 'absent' | 'returned' | 'aheadOfKnown') =>
      known.reduce((total, { load }) => total + load[part], 0)
    return {
      known: known.length > 0,
      // New jobs go to a queue that is not paused.
      paused: known.length > 0 && known.every(({ load }) => load.paused),
      ...{ waiting: sum('waiting'), deferred: sum('deferred'), active: sum('active'), absent: sum('absent') },
      returned: sum('returned'),
      aheadOfKnown: sum('aheadOfKnown'),
      ...summed.capacity,
      linePerSecond: line.current(),
    }
  }
}
