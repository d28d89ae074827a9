// The resources of one test: a queue in the real Redis, and closing for everything that it starts.
import { randomBytes } from 'node:crypto'
import { deleteKeys, type Ending, testEnvironment } from '@spillway/infra/harness/namespace'
import { startProxy, type TcpProxy } from '@spillway/infra/harness/tcp-proxy'
import { until } from '@spillway/infra/processes/until'
import { queueKey } from '@spillway/queue/keys'
import { Redis } from 'ioredis'

export interface Space {
  redisUrl: string
  prefix: string
  /** A connection of the test's own, to look at the queue and to tamper with it. */
  redis: Redis
  /** Called after the test; the last one first. */
  closing(close: () => Promise<unknown>): void
}

/** A space in the Redis that all tests share, or in this one. */
export function spaceFor(t: Ending, redisUrl = testEnvironment().redisUrl): Space {
  const redis = new Redis(redisUrl)
  const prefix = `{test-${randomBytes(6).toString('hex')}}`
  const closes: (() => Promise<unknown>)[] = []
  t.onTestFinished(async () => {
    for (const close of closes.reverse()) await close()
    redis.disconnect()
    await deleteKeys(redisUrl, prefix)
  })
  return { redisUrl, prefix, redis, closing: (close) => closes.push(close) }
}

/** A proxy to the Redis of a space, closed after the test. */
export async function redisProxy({ redisUrl, closing }: Space): Promise<TcpProxy> {
  const proxy = await startProxy(redisUrl)
  closing(() => proxy.close())
  return proxy
}

/** The key of a job as BullMQ stores it. */
export function jobKey({ prefix }: Space, jobId: string): string {
  return `${prefix}:passwords:${jobId}`
}

/** The ids of the jobs that wait, the next one last. */
export function waitingJobs({ redis, prefix }: Space): Promise<string[]> {
  return redis.lrange(queueKey(prefix, 'wait'), 0, -1)
}

/** The ids of the jobs in hand. */
export function activeJobs({ redis, prefix }: Space): Promise<string[]> {
  return redis.lrange(queueKey(prefix, 'active'), 0, -1)
}

/** Why a job failed; undefined while it has not. */
async function failureOf(space: Space, jobId: string): Promise<string | undefined> {
  if ((await space.redis.zscore(`${space.prefix}:passwords:failed`, jobId)) === null) return undefined
  return (await space.redis.hget(jobKey(space, jobId), 'failedReason')) ?? undefined
}

/** Why a job has failed, once it has. If it does not, the error names its place, and its lock. */
export function whenFailed(space: Space, jobId: string): Promise<string> {
  const { redis } = space
  const key = (part: string) => `${space.prefix}:passwords:${part}`
  return until(async () => {
    const reason = await failureOf(space, jobId)
    if (reason !== undefined) return reason
    const [waiting, active, completed, lock] = await Promise.all([
      redis.lrange(key('wait'), 0, -1),
      redis.lrange(key('active'), 0, -1),
      redis.zrange(key('completed'), '0', '-1'),
      redis.get(`${jobKey(space, jobId)}:lock`),
    ])
    throw new Error(`not failed: ${JSON.stringify({ jobId, waiting, active, completed, lock })}`)
  })
}

/** What BullMQ keeps of a completed job; undefined until it has completed. */
export async function completionOf(space: Space, jobId: string): Promise<unknown> {
  const result = await space.redis.hget(jobKey(space, jobId), 'returnvalue')
  return result === null ? undefined : JSON.parse(result)
}
