/** Lua scripts by EVALSHA: ioredis sends the source once for each connection. */
import { createHash } from 'node:crypto'
import type { RedisConnection } from './connect.js'

export type Script = (redis: RedisConnection, keys: readonly string[], ...args: (string | number)[]) => Promise<unknown>

export function defineScript(lua: string): Script {
  const name = createHash('sha256').update(lua).digest('base64url')
  return async (redis, keys, ...args) => {
    if (!(name in redis)) redis.defineCommand(name, { lua })
    const command: unknown = Reflect.get(redis, name)
    if (typeof command === 'function') return await Reflect.apply(command, redis, [keys.length, ...keys, ...args])
    throw new TypeError('ioredis defines no commands on its connections')
  }
}
