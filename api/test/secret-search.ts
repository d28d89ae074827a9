// Looks for secrets in the output of a process or in Redis, in every form they might have there.

import { until } from '@spillway/infra/processes/until'
import type { RedisConnection } from '@spillway/queue/client'

/** Secrets by what they are: two of the same name are told apart by a number. */
export class Secrets {
  readonly #needles: { name: string; needle: string }[] = []

  add(name: string, secret: string): void {
    if (secret.length < 16) throw new Error(`${name} is too short to be told from chance`)
    this.#needles.push(...formsOf(secret).map((needle) => ({ name, needle })))
  }

  /** The names of the secrets that a text holds. */
  foundIn(text: string): string[] {
    return [...new Set(this.#needles.filter(({ needle }) => text.includes(needle)).map(({ name }) => name))]
  }
}

/** A secret as it is, escaped, in hexadecimal, and in the middle of anything in base64 */
function formsOf(secret: string): string[] {
  const hex = Buffer.from(secret).toString('hex')
  const shifted = [0, 1, 2].flatMap((offset) => {
    const text = Buffer.from(`${' '.repeat(offset)}${secret}`)
    // Only whole groups of three bytes look the same whatever stands around them.
    const first = Math.ceil(offset / 3) * 4
    const last = Math.floor(text.length / 3) * 4
    return [text.toString('base64').slice(first, last), text.toString('base64url').slice(first, last)]
  })
  const reversed = [...secret].reverse().join('')
  return [
    ...new Set([
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
      reversed,
      hex,
      hex.toUpperCase(),
      ...shifted,
    ]),
  ]
}

/** Everything that Redis holds, of whatever type, keys included. */
export async function readKeyspace(redis: RedisConnection): Promise<string> {
  const texts = await Promise.all(
    (await redis.keys('*')).map(async (key) => [key, await until(() => readKey(redis, key))]),
  )
  return texts.flat(2).join('\n')
}

/** Rejects where another test replaced the key by one of another type meanwhile. */
async function readKey(redis: RedisConnection, key: string): Promise<string[]> {
  switch (await redis.type(key)) {
    case 'string':
      return [(await redis.get(key)) ?? '']
    case 'hash':
      return Object.entries(await redis.hgetall(key)).flat()
    case 'list':
      return redis.lrange(key, 0, -1)
    case 'set':
      return redis.smembers(key)
    case 'zset':
      return redis.zrange(key, 0, '-1')
    case 'stream':
      return (await redis.xrange(key, '-', '+')).flat(2)
    case 'none':
      return []
    default:
      throw new Error(`${key} is of a type that is not searched`)
  }
}
