/** Redis scripts as functions, by EVALSHA: ioredis sends a source once a connection. */
import { createHash } from 'node:crypto'
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

/** A script by its text, until all are files. */
export function defineLua(lua: string): Script {
  const name = createHash('sha256').update(lua).digest('base64url')
  return async (redis, keys, ...args) => {
    if (!(name in redis)) redis.defineCommand(name, { lua })
    const command: unknown = Reflect.get(redis, name)
    if (typeof command === 'function') return await Reflect.apply(command, redis, [keys.length, ...keys, ...args])
    throw new TypeError('ioredis defines no commands on its connections')
  }
}

export const LUA_SOUND = `
local function keep_only(kind, key)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then redis.call('DEL', key) end
end
local function to_count(text)
  return type(text) == 'string' and #text <= 15 and string.find(text, '^[1-9]%d*$') and tonumber(text) or 0
end`
