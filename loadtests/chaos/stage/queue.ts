// The keys of one system in Redis.
import { until } from '@spillway/local/processes/until'
import type { Findings } from '../scenario.ts'
import type { OwnSystem } from './system.ts'

/** Resolves when no job is left: waiting, held, deferred or in hand. */
export async function drained({ redis, queuePrefix }: OwnSystem, timeoutMs = 10_000): Promise<void> {
  const keys = ['wait', 'prioritized', 'active'].map((part) => `${queuePrefix}:passwords:${part}`)
  const count = `return redis.call('LLEN', KEYS[1]) + redis.call('ZCARD', KEYS[2]) + redis.call('LLEN', KEYS[3])`
  const isEmpty = async () => Number(await redis.command('EVAL', count, keys.length, ...keys)) === 0
  await until(isEmpty, { timeoutMs, what: 'an empty queue' })
}

/** BullMQ's own, the jobs it keeps for operators (ten minutes, 500 of a kind), and what workers and gateways publish (a minute). */
const STAYING =
  /^:(passwords:(events|id|meta|marker|stalled-check|stalled|completed|failed|pc|[0-9a-f-]{36})|capacity|gateways)$/

/** Once every ticket has expired, within timeoutMs, no key may be left but those that stay. */
export async function expectNoLeftovers(findings: Findings, system: OwnSystem, timeoutMs: number): Promise<void> {
  const { redis, queuePrefix } = system
  let left: string[] = []
  const areGone = async () => {
    const keys = await redis.command('KEYS', `${queuePrefix}*`)
    const names = Array.isArray(keys) ? keys.map((key) => String(key).slice(queuePrefix.length)) : []
    left = names.filter((name) => !STAYING.test(name))
    return left.length === 0
  }
  const gone = await until(areGone, { timeoutMs }).catch(() => false)
  findings.expect(gone, `keys stay in Redis: ${left.slice(0, 5).join(', ')}`)
}
