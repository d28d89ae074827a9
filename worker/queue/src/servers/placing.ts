/** Adds jobs to one Redis server of several: the best first, and another one when that does not take them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { PasswordClientError } from '../errors.js'
import type { RedisServer } from '../redis/servers.js'
import { QueueClient } from '../wait/one-queue.js'
import type { QueueClientOptions } from '../wait/password-client.js'
import type { JobName, Lane, Requests } from '../wire/job.js'
import { orderOf } from './choose.js'
import { createHealth, type Health, TICK_MS } from './health.js'

/** How long adding a job is retried while a Redis server is usable: several may fail in turn and recover a moment later. */
const TRIED_FOR_MS = 2_000

export interface Work<Name extends JobName = JobName> {
  name: Name
  request: Requests[Name]
  lane: Lane
  waitMs: number
}

export interface Placed {
  server: OpenServer
  pending: Awaited<ReturnType<OpenServer['client']['submit']>>
}

export interface Placing {
  /** Adds a new job. Throws `queue_unavailable` when no server takes it: after one try of each where no server was usable, else after some seconds. */
  place(work: Work, lifeMs: number): Promise<Placed>
  /** Adds a job to a better server than this one; undefined when there is no better server. Throws as `place` does. */
  placeElsewhere(work: Work, than: OpenServer | undefined, lifeMs: number): Promise<Placed | undefined>
  /** Whether there is one that is better for jobs than this one. */
  hasBetter(than: OpenServer): boolean
}

export function createPlacing(
  servers: readonly OpenServer[],
  /** Ends a copy that was added after all. */
  discard: (late: Placed) => void,
): Placing {
  /** While its own Redis answers, a job is moved only to where workers take it. */
  const isBetter = (than: OpenServer | undefined) => (other: OpenServer) =>
    other !== than && !other.draining && (than?.health.isUsable() ? other.health.isServed() : other.health.isUsable())
  const isAnyUsable = (): boolean => servers.some(({ draining, health }) => !draining && health.isUsable())

  const adding = new Map<OpenServer, number>()
  const countAdding = (server: OpenServer, change: 1 | -1) => adding.set(server, (adding.get(server) ?? 0) + change)

  function inOrder(lane: Lane): OpenServer[] {
    const candidates = servers
      .filter(({ draining }) => !draining)
      .map((server) => ({
        server,
        isUsable: server.health.isUsable(),
        waitMs: server.client.predictedWaitMs(lane),
        adding: adding.get(server) ?? 0,
      }))
    return orderOf(candidates).map(({ server }) => server)
  }

  /** Throws `queue_unavailable` when this one refuses, or is given up because another one answers. */
  async function addTo(server: OpenServer, { name, request, lane, waitMs }: Work, lifeMs: number): Promise<Placed> {
    countAdding(server, 1)
    const added = server.client
      .submit(name, request, lane, lifeMs, waitMs)
      .catch((error: unknown) => {
        if (isUnavailable(error)) server.health.refused()
        throw error
      })
      .finally(() => countAdding(server, -1))
    const givingUp = whenMet(() => server.health.isOut() && servers.some(isBetter(server)))
    try {
      const pending = await Promise.race([added, givingUp.promise])
      if (pending !== undefined) return { server, pending }
    } finally {
      givingUp.stop()
    }
    added.then(
      (late) => discard({ server, pending: late }),
      () => undefined,
    )
    throw new PasswordClientError('queue_unavailable', 'Redis does not answer')
  }

  /** Adds a job to the first of these that takes it. */
  async function addToFirst(candidates: readonly OpenServer[], work: Work, lifeMs: number): Promise<Placed> {
    const [next, ...others] = candidates
    if (next === undefined) throw new PasswordClientError('queue_unavailable', 'no Redis server can take the job')
    try {
      return await addTo(next, work, lifeMs)
    } catch (error) {
      if (others.length === 0 || !isUnavailable(error)) throw error
      return await addToFirst(others, work, lifeMs)
    }
  }

  return {
    async place(work, lifeMs) {
      const endsAt = performance.now() + TRIED_FOR_MS
      // Asked before the job is tried: one that refuses it counts as not usable until its next probe.
      const wasAnyUsable = isAnyUsable()
      for (;;) {
        try {
          return await addToFirst(inOrder(work.lane), work, lifeMs)
        } catch (error) {
          const isHopeless = !wasAnyUsable && !isAnyUsable()
          if (!isUnavailable(error) || isHopeless || performance.now() > endsAt) throw error
          await sleep(TICK_MS)
        }
      }
    },
    async placeElsewhere(work, than, lifeMs) {
      const candidates = inOrder(work.lane).filter(isBetter(than))
      return candidates.length === 0 ? undefined : await addToFirst(candidates, work, lifeMs)
    },
    hasBetter: (than) => servers.some(isBetter(than)),
  }
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof PasswordClientError && error.code === 'queue_unavailable'
}

/** Resolves with undefined once the condition is met, which is looked at every tick until it is stopped. */
function whenMet(isMet: () => boolean): { promise: Promise<undefined>; stop(): void } {
  let timer: NodeJS.Timeout | undefined
  const promise = new Promise<undefined>((resolve) => {
    timer = setInterval(() => isMet() && resolve(undefined), TICK_MS)
  })
  return { promise, stop: () => clearInterval(timer) }
}

/** One Redis server of several, with its client and its health. */
export interface OpenServer extends RedisServer {
  client: QueueClient
  health: Health
}

export function openServer(server: RedisServer, options: QueueClientOptions): OpenServer {
  const client = new QueueClient(server, options)
  const health = createHealth({
    isReady: () => client.isReady(),
    isKnown: () => client.load().known,
    reading: () => client.reading(),
    hasWorkers: () => client.load().jobsPerSecond > 0,
    probe: () => client.probe(),
  })
  return { ...server, client, health }
}
