// Two independent Redis side by side.
import type { RedisServer, Stage } from './stage.ts'

export interface TwoRedis {
  first: RedisServer
  second: RedisServer
  /** For gateways and workers. */
  url: string
  close(): Promise<void>
}

export async function startTwoRedis(stage: Stage): Promise<TwoRedis> {
  const [first, second] = await Promise.all([stage.redis(), stage.redis()])
  return {
    first,
    second,
    url: `${first.url} ${second.url}`,
    async close() {
      await Promise.all([first.close(), second.close()])
    },
  }
}
