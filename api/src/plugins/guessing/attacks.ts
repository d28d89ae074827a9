/** Notices networks that fail on many accounts, and passwords that fail on many. */
import { createHmac, randomBytes } from 'node:crypto'
import { defineScript, toList } from '@spillway/queue/redis/script'
import { wideNetworkOf } from '../client-network.js'
import { atHome, type CountingRedis } from '../counts.js'

const WINDOW_MS = 600_000
/** Accounts that fail from one network within a window: more than its people mistype. */
const ACCOUNTS_OF_ADDRESS = 50
const ACCOUNTS_OF_NETWORK = 100

const countProbed = defineScript('countProbed-4', new URL('../scripts/', import.meta.url))

/** Networks that fail on many accounts. Redis counts distinct ones (HyperLogLog), for all gateways. */
export class ProbedNetworks {
  readonly #redis: readonly CountingRedis[]
  readonly #queuePrefix: string

  constructor(redis: readonly CountingRedis[], queuePrefix: string) {
    this.#redis = redis
    this.#queuePrefix = queuePrefix
  }

  /** Counts a failure. Resolves with the networks noticed by it, each once in ten minutes. */
  async failed(account: string, network: string): Promise<string[]> {
    const wide = wideNetworkOf(network)
    const networks = [network, wide]
    const keys = networks.flatMap((each) => [this.#keyOf(each), `${this.#keyOf(each)}:noticed`])
    const bounds = [WINDOW_MS, account, ACCOUNTS_OF_ADDRESS, ACCOUNTS_OF_NETWORK]
    const answer = await atHome(wide, this.#redis, ({ connection }) => countProbed(connection, keys, ...bounds))
    const noticed = toList(answer)
    return networks.filter((_, n) => noticed[n] === 1)
  }

  #keyOf(network: string): string {
    return `${this.#queuePrefix}:probed:${network}`
  }
}

/** Accounts that one password fails on within a window. */
const ACCOUNTS = 50
const BUCKETS = 2 ** 24
/** The most entries of one window, in all buckets: an attack takes no memory beyond them. */
const ENTRIES_MAX = 50_000

/**
 * Passwords that fail on many accounts, counted in buckets of a digest. Its key is new for each
 * window and never leaves the process: no Redis and no log holds anything derived from a password.
 */
export class SprayedPasswords {
  readonly #nowMs: () => number
  #key = randomBytes(32)
  #endsMs: number
  #entries = 0
  #accounts = new Map<number, Set<string>>()

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
    this.#endsMs = nowMs() + WINDOW_MS
  }

  /** Counts a failure. True once in a window for each password that failed on so many accounts. */
  failed(password: string, account: string): boolean {
    if (this.#nowMs() >= this.#endsMs) {
      this.#key = randomBytes(32)
      this.#endsMs = this.#nowMs() + WINDOW_MS
      this.#entries = 0
      this.#accounts = new Map()
    }
    const bucket = createHmac('sha256', this.#key).update(password).digest().readUInt32BE(0) % BUCKETS
    const tried = this.#accounts.get(bucket) ?? new Set()
    if (this.#entries >= ENTRIES_MAX || tried.has(account)) return false
    this.#entries++
    this.#accounts.set(bucket, tried.add(account))
    return tried.size === ACCOUNTS
  }
}
