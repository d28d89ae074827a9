// What stands in Redis under the keys of one system.
import { until } from '@spillway/local/processes/until'
import type { RedisServer } from './redis.ts'

/** Jobs that wait, held or deferred, and those in hand. */
export async function outstanding(redis: RedisServer, prefix: string): Promise<number> {
  const keys = ['wait', 'prioritized', 'active'].map((part) => `${prefix}:passwords:${part}`)
  const count = `return redis.call('LLEN', KEYS[1]) + redis.call('ZCARD', KEYS[2]) + redis.call('LLEN', KEYS[3])`
  return Number(await redis.command('EVAL', count, keys.length, ...keys))
}

/** Until no job is left. */
export async function drained(redis: RedisServer, prefix: string, timeoutMs = 10_000): Promise<void> {
  await until(async () => (await outstanding(redis, prefix)) === 0, { timeoutMs, what: 'an empty queue' })
}

/** BullMQ's own, the jobs it keeps for operators (ten minutes, 500 of a kind), and what workers say of themselves (a minute). */
const STAYING =
  /^:(passwords:(events|id|meta|marker|stalled-check|stalled|completed|failed|pc|[0-9a-f-]{36})|capacity)$/

/** The keys of a system that should be gone once every ticket has expired, without the prefix. */
export async function leftovers(redis: RedisServer, prefix: string): Promise<string[]> {
  const keys = await redis.command('KEYS', `${prefix}*`)
  const names = Array.isArray(keys) ? keys.map((key) => String(key).slice(prefix.length)) : []
  return names.filter((name) => !STAYING.test(name))
}
