/** The failed logins of an account, as operators see and forget them. */
import type { Keyring } from '@spillway/queue/queue-client'
import { defineScript, toCount, toList } from '@spillway/queue/redis/script'
import type { GatewayConfig } from '../../config.js'
import { accountDigest, accountNameOf, accountNamesOf, accountOfEmail, atHome, type CountingRedis } from '../counts.js'
import { orUnavailable, redisUnavailable } from '../errors.js'
import { delayArguments } from './attempts.js'

const readFailures = defineScript('readFailures-3', new URL('../scripts/', import.meta.url))

const FAILURES = ['guesses', 'guesses:pending', 'guesses:devices', 'limit:account']
const MAILS = ['limit:mail', 'limit:notice']

export interface FailureState {
  /** Of all unknown devices together, since the last right password. */
  failures: number
  /** Until when the next login from an unknown device has to wait; null where it need not. */
  waitUntil: string | null
  /** Whether such a login must solve a challenge. */
  needsChallenge: boolean
  /** Known devices that have failed since their last right password. */
  failedDevices: number
}

export class Failures {
  readonly #config: GatewayConfig
  readonly #redis: readonly CountingRedis[]
  readonly #keyring: Keyring

  constructor(config: GatewayConfig, redis: readonly CountingRedis[], keyring: Keyring) {
    this.#config = config
    this.#redis = redis
    this.#keyring = keyring
  }

  /** Rejects while Redis does not answer. */
  async read(email: string): Promise<FailureState> {
    const { QUEUE_PREFIX: prefix, GUESSES_PER_ACCOUNT: most } = this.#config
    const name = accountNameOf(accountOfEmail(email), this.#keyring)
    const keys = ['guesses', 'guesses:pending', 'guesses:devices'].map((kind) => `${prefix}:${kind}:${name}`)
    // Where attempts count it.
    const answer = await atHome(`${prefix}:limit:account:${name}`, this.#redis, ({ connection }) =>
      readFailures(connection, keys, ...delayArguments(this.#config)),
    )
    const [failures = 0, waitMs = 0, failedDevices = 0] = toList(answer).map(toCount)
    return {
      failures,
      waitUntil: most > 0 && waitMs > 0 ? new Date(Date.now() + waitMs).toISOString() : null,
      needsChallenge: most > 0 && failures >= most,
      failedDevices,
    }
  }

  /**
   * Forgets them on every usable Redis server. Resolves with how many counts there were. Throws
   * `unavailable` without a usable server.
   */
  forget(email: string): Promise<number> {
    const usable = this.#redis.filter(({ isUsable }) => isUsable())
    return this.#delete(usable, [accountOfEmail(email)], FAILURES)
  }

  /** Forgets every count of an account. Throws `unavailable` while any Redis server is away. */
  async forgetAccount({ id, email }: { id: string; email: string }): Promise<void> {
    if (!this.#redis.every(({ isUsable }) => isUsable())) throw redisUnavailable()
    await this.#delete(this.#redis, [accountOfEmail(email), accountDigest(id)], [...FAILURES, ...MAILS])
  }

  async #delete(servers: readonly CountingRedis[], accounts: readonly string[], kinds: readonly string[]) {
    if (servers.length === 0) throw redisUnavailable()
    const names = accounts.flatMap((account) => accountNamesOf(account, this.#keyring))
    const keys = kinds.flatMap((kind) => names.map((name) => `${this.#config.QUEUE_PREFIX}:${kind}:${name}`))
    const deleted = await orUnavailable(Promise.all(servers.map(({ connection }) => connection.del(keys))))
    return deleted.reduce((sum, count) => sum + count, 0)
  }
}
