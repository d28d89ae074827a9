/**
 * Watches whether a Redis server may evict keys: counters of guesses, jobs, results.
 * Many managed services do so by default, and operators change it while Redis runs.
 */
import type { Logger } from '@spillway/common/throttled-warning'
import { Redis } from 'ioredis'
import type { RedisConnection } from './connect.js'

const READ_INTERVAL_MS = 60_000

/** `none`: `noeviction`; `possible`: any other policy; `unknown`: Redis does not report it. */
export type Eviction = 'none' | 'possible' | 'unknown'

/** Reads and logs each change, with the address and the policy, until the connection is closed. */
export class EvictionWatch {
  readonly #redis: RedisConnection
  readonly #address: string
  readonly #log: Logger
  /** Undefined before the first reading; empty if Redis does not report it. */
  #policy: string | undefined

  constructor(redis: RedisConnection, address: string, log: Logger) {
    this.#redis = redis
    this.#address = address
    this.#log = log
    const readNow = () => void this.#read()
    redis.on('ready', readNow)
    readNow()
    const timer = setInterval(readNow, READ_INTERVAL_MS).unref()
    redis.once('end', () => clearInterval(timer))
  }

  /** The last reading; undefined before the first. */
  readonly state = (): Eviction | undefined => {
    if (this.#policy === undefined) return undefined
    if (this.#policy === '') return 'unknown'
    return this.#policy === 'noeviction' ? 'none' : 'possible'
  }

  async #read(): Promise<void> {
    const redis = this.#redis
    if (redis.status !== 'ready') return
    const nodes = redis instanceof Redis ? [redis] : redis.nodes('master')
    const policies = await Promise.all(nodes.map(policyOf)).catch(() => undefined)
    // The connection to Redis was lost meanwhile.
    if (policies === undefined) return
    const policy = policies.find((each) => each !== 'noeviction') ?? 'noeviction'
    const before = this.#policy
    if (policy === before) return
    this.#policy = policy
    const facts = { redis: this.#address, policy }
    if (policy === '')
      this.#log.warn(facts, 'redis does not tell whether it evicts keys: its maxmemory-policy must be noeviction')
    else if (policy !== 'noeviction')
      this.#log.warn(
        facts,
        'redis may evict counters of guesses, jobs and results: set its maxmemory-policy to noeviction',
      )
    else if (before !== undefined) this.#log.info(facts, 'redis evicts no keys any more')
  }
}

/** The policy; empty if Redis does not report it. INFO needs fewer rights than CONFIG. */
async function policyOf(redis: Redis): Promise<string> {
  const told = /^maxmemory_policy:([\w-]+)\r?$/m.exec(String(await redis.info('memory').catch(unlessAway(redis))))?.[1]
  if (told !== undefined) return told
  const setting = await redis.config('GET', 'maxmemory-policy').catch(unlessAway(redis))
  const policy = Array.isArray(setting) ? setting[1] : undefined
  return typeof policy === 'string' ? policy : ''
}

/** A refused command reports no policy. Rejects if the connection ended. */
function unlessAway(redis: Redis): (error: unknown) => undefined {
  return (error) => {
    if (redis.status !== 'ready') throw error
    return undefined
  }
}
