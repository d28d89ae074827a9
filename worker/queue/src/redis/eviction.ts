/**
 * Watches whether a Redis server may evict keys: counters of guesses, marks of used tickets, jobs.
 * Many managed services do so by default (`volatile-lru`). The policy is read on each new
 * connection and every minute, because operators change it while Redis runs.
 */
import { Redis } from 'ioredis'
import type { RedisConnection } from './connect.js'

const READ_INTERVAL_MS = 60_000

/** `none`: `noeviction`; `possible`: any other policy; `unknown`: Redis does not tell. */
export type Eviction = 'none' | 'possible' | 'unknown'

interface EvictionLog {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

/**
 * Logs each change, with the address and the policy, until the connection is closed. Returns what
 * gives the last reading: undefined before the first.
 */
export function watchEviction(options: {
  redis: RedisConnection
  address: string
  log: EvictionLog
}): () => Eviction | undefined {
  const { redis, address, log } = options
  let state: Eviction | undefined
  let readBefore: string | undefined

  async function read(): Promise<void> {
    if (redis.status !== 'ready') return
    const nodes = redis instanceof Redis ? [redis] : redis.nodes('master')
    const policies = await Promise.all(nodes.map(policyOf)).catch(() => undefined)
    // Redis went away meanwhile.
    if (policies === undefined) return
    const policy = policies.find((each) => each !== 'noeviction') ?? 'noeviction'
    if (policy === readBefore) return
    const before = state
    state = policy === 'noeviction' ? 'none' : policy === '' ? 'unknown' : 'possible'
    readBefore = policy
    if (state === 'possible')
      log.warn(
        { redis: address, policy },
        'redis may evict counters of guesses, marks of used tickets and jobs: set its maxmemory-policy to noeviction',
      )
    else if (state === 'unknown')
      log.warn(
        { redis: address },
        'redis does not tell whether it evicts keys: its maxmemory-policy must be noeviction',
      )
    else if (before !== undefined) log.info({ redis: address }, 'redis evicts no keys any more')
  }

  const readNow = () => void read()
  redis.on('ready', readNow)
  readNow()
  const timer = setInterval(readNow, READ_INTERVAL_MS)
  timer.unref()
  redis.once('end', () => clearInterval(timer))
  return () => state
}

/** Empty where Redis does not tell. INFO needs fewer rights than CONFIG. Rejects without Redis. */
async function policyOf(redis: Redis): Promise<string> {
  const told = /^maxmemory_policy:([\w-]+)\r?$/m.exec(String(await redis.info('memory').catch(unlessAway(redis))))?.[1]
  if (told !== undefined) return told
  const setting = await redis.config('GET', 'maxmemory-policy').catch(unlessAway(redis))
  const policy = Array.isArray(setting) ? setting[1] : undefined
  return typeof policy === 'string' ? policy : ''
}

/** What Redis refuses it does not tell; a connection that ended tells nothing about Redis. */
function unlessAway(redis: Redis): (error: unknown) => undefined {
  return (error) => {
    if (redis.status !== 'ready') throw error
    return undefined
  }
}
