/**
 * Redis scripts as functions, by EVALSHA: ioredis sends a source once for each connection. Scripts
 * are `.lua` files in a folder `scripts`. A name ends with the number of keys (`promote-2.lua`); the
 * header lists keys, arguments and result. `--- @include "name"` stands for `includes/name.lua` of
 * the same folder.
 */
import { readFileSync } from 'node:fs'
import type { RedisConnection } from './connect.js'

type Script = (redis: RedisConnection, keys: readonly string[], ...args: (string | number)[]) => Promise<unknown>

/**
 * Reads a script now, and defines it as a command of each connection that it is called on.
 *
 * @param name with the number of keys, as `promote-2`; unique among all scripts
 * @param folder URL of the folder, with a slash at its end
 */
export function defineScript(name: string, folder: URL): Script {
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

/** A whole number of 0 or more. Throws for any other value: Redis is not trusted. */
export function toCount(part: unknown): number {
  if (typeof part === 'number' && Number.isSafeInteger(part) && part >= 0) return part
  throw new TypeError('Redis gave no number where a script returns one')
}

/** A reply as a list. Throws for any other value. */
export function toList(reply: unknown): unknown[] {
  if (Array.isArray(reply)) return reply
  throw new TypeError('Redis gave no list where a script returns one')
}

const HEADER = /^--\[\[\n.*?^\]\]\n/gms
const INCLUDE = /^--- @include "(\w+)"\n/gm

/**
 * The source of a script without headers, with every include once.
 *
 * @param folder URL of the folder, with a slash at its end
 */
function readScript(name: string, folder: URL): string {
  const included = new Set<string>()

  function expanded(file: string): string {
    const source = readFileSync(new URL(file, folder), 'utf8').replace(HEADER, '')
    return source.replace(INCLUDE, (_, part: string) => {
      if (included.has(part)) return ''
      included.add(part)
      return expanded(`includes/${part}.lua`)
    })
  }

  return expanded(`${name}.lua`)
}
