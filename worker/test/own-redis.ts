// A Redis that a file of tests has to itself, because they have it refuse what others rely on.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { openKeeper } from '@spillway/local/processes/keeper'
import { programsDir } from '@spillway/local/processes/repository'
import { startRedis } from '@spillway/local/services/redis'
import type { Space } from './space.ts'

/** Starts it, and ends it after the tests of this file. Resolves with its url. */
export async function startOwnRedis(): Promise<string> {
  const keeper = openKeeper()
  const dir = await mkdtemp(join(tmpdir(), 'spillway-redis-'))
  after(async () => {
    await keeper.close()
    await rm(dir, { recursive: true, force: true })
  })
  const { url } = await startRedis({
    keeper,
    dir: join(dir, 'data'),
    durable: false,
    programsDir,
    logFile: join(dir, 'redis.log'),
    preferredPort: 0,
    password: 'secret',
    say: () => undefined,
  })
  return url
}

/** Why it refuses writes, and the setting that makes it do so: no memory is left, or no replica would have them. */
const refusals = {
  OOM: { setting: 'maxmemory', on: '1', off: '0' },
  NOREPLICAS: { setting: 'min-replicas-to-write', on: '1', off: '0' },
} as const

/** Has the space's Redis refuse writes, until the function that this resolves with is called, or the test ends. */
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
