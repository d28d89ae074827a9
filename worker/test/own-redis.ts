// A Redis that a file of tests has to itself, because they have it refuse what others rely on.
import { type OwnRedis, startOwnRedis as start } from '@spillway/infra/test/own-redis'
import { afterAll } from 'vitest'
import type { Space } from './space.ts'

/** Starts it, and ends it after the tests of this file. Resolves with its url. */
export async function startOwnRedis(): Promise<string> {
  return (await startOwnRedisServer()).url
}

/** The same, with what stops and starts it. */
export async function startOwnRedisServer(): Promise<OwnRedis> {
  const redis = await start()
  afterAll(() => redis.close())
  return redis
}

/** Why it refuses writes, and the setting for it: no memory is left, or no replica is there */
const refusals = {
  OOM: { setting: 'maxmemory', on: '1', off: '0' },
  NOREPLICAS: { setting: 'min-replicas-to-write', on: '1', off: '0' },
} as const

/** Has the space's Redis refuse writes until the returned function is called, or the test ends */
export async function refuseWrites(
  { redis, closing }: Space,
  why: keyof typeof refusals,
): Promise<() => Promise<void>> {
  const { setting, on, off } = refusals[why]
  await redis.config('SET', setting, on)
  const takeAgain = async (): Promise<void> => {
    await redis.config('SET', setting, off)
  }
  closing(takeAgain)
  return takeAgain
}
