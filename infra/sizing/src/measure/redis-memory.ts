// What a waiting job takes in Redis.
import { respondAsync } from '@spillway/local/testing/api-client'
import { Redis } from 'ioredis'
import type { MeasuredSystem } from './system.ts'

const JOBS = 1_000

/** Stops the worker, lets jobs pile up, and divides. The worker is stopped for good. */
export async function measureJobBytes(system: MeasuredSystem): Promise<number> {
  const emails = await system.accounts('memory', JOBS, '$spillway-token$')
  const redis = new Redis(system.redisUrl)
  const { queuePrefix: prefix } = system
  const used = async (): Promise<number> => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
  try {
    await system.worker.stop()
    const before = await used()
    for (const email of emails) {
      await system.api.login({ email, password: 'whatever it is' }, respondAsync)
    }
    const waiting =
      (await redis.llen(`${prefix}:passwords:wait`)) + (await redis.zcard(`${prefix}:passwords:prioritized`))
    return ((await used()) - before) / waiting
  } finally {
    redis.disconnect()
  }
}
