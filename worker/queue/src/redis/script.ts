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

// Redis is not trusted, and a connection that lost a reply gives each command another's.

/** The reply is not one of the command. */
export class UnexpectedReply extends Error {
  override readonly name = 'UnexpectedReply'
}

/** A whole number of 0 or more. Throws {@link UnexpectedReply} for anything else. */
export function toCount(part: unknown): number {
  if (typeof part === 'number' && Number.isSafeInteger(part) && part >= 0) return part
  throw new UnexpectedReply('Redis gave no number where a script returns one')
}

/** A reply as a list. Throws {@link UnexpectedReply} for anything else. */
export function toList(reply: unknown): unknown[] {
  if (Array.isArray(reply)) return reply
  throw new UnexpectedReply('Redis gave no list where a script returns one')
}
