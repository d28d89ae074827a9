/**
 * Redis scripts as functions, by EVALSHA: ioredis sends a source once for each connection. Scripts
 * are `.lua` files in a folder `scripts`. A name ends with the number of keys (`promote-2.lua`); the
 * header lists keys, arguments and result.
 */
import { readFileSync } from 'node:fs'
import type { RedisConnection } from './connect.js'

export type Script<Reply> = (
  redis: RedisConnection,
  keys: readonly string[],
  ...args: (string | number)[]
) => Promise<Reply>

/**
 * Reads a script now, and defines it as a command of each connection that it is called on. `Reply` is
 * what its header says; false is null.
 *
 * @param name with the number of keys, as `promote-2`; unique among all scripts
 * @param folder URL of the folder, with a slash at its end
 */
export function defineScript<Reply>(name: string, folder: URL): Script<Reply> {
  const lua = readFileSync(new URL(`${name}.lua`, folder), 'utf8')
  const numberOfKeys = Number(/-(\d+)$/.exec(name)?.[1])
  const command = `spillway:${name}`
  return async (redis, keys, ...args) => {
    if (!(command in redis)) redis.defineCommand(command, { lua, numberOfKeys })
    return await Reflect.apply(Reflect.get(redis, command), redis, [...keys, ...args])
  }
}
