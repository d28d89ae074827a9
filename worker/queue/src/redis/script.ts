/** Redis scripts as functions, by EVALSHA: ioredis sends a source once a connection. */
import type { RedisConnection } from './connect.js'
import { readScript } from './read-script.js'

type Script = (redis: RedisConnection, keys: readonly string[], ...args: (string | number)[]) => Promise<unknown>

/**
 * Reads a script now, and defines it as a command of each connection that it is called on.
 *
 * @param name with the number of keys, as `passOver-8`; unique among all scripts
 * @param folder URL of the folder, with a slash at its end [the queue's scripts]
 */
export function defineScript(name: string, folder?: URL): Script {
  const lua = readScript(name, folder)
  const numberOfKeys = Number(/-(\d+)$/.exec(name)?.[1])
  const command = `spillway:${name}`
  return async (redis, keys, ...args) => {
    if (keys.length !== numberOfKeys) throw new TypeError(`${name} was called with ${keys.length} keys`)
    if (!(command in redis)) redis.defineCommand(command, { lua, numberOfKeys })
    const run: unknown = Reflect.get(redis, command)
    if (typeof run === 'function') return await Reflect.apply(run, redis, [...keys, ...args])
    throw new TypeError('ioredis defines no commands on its connections')
  }
}
