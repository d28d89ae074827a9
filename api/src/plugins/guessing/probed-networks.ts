/**
 * Notices networks that fail on many accounts: single IPv4 addresses, the /64 of IPv6 addresses, and the networks around them. Redis counts
 * distinct accounts (HyperLogLog), for all gateways together, and forgets them after ten minutes.
 */
import { defineLua } from '@spillway/queue/redis/script'
import { toList } from '@spillway/queue/redis/unexpected-reply'
import { wideNetworkOf } from '../client-network.js'
import { atHome, type CountingRedis } from '../counts.js'

const WINDOW_MS = 600_000
/** Accounts that fail from one network within a window: more than people behind one address, or of one neighbourhood, mistype. */
const ACCOUNTS_OF_ADDRESS = 50
const ACCOUNTS_OF_NETWORK = 100

/**
 * Lua: counts an account for each network.
 * KEYS: for each network its accounts and the mark that it was noticed. ARGV: the window in milliseconds, the account, the bound of each.
 * Returns for each network whether it is noticed now, which is once in a window.
 */
const countAccount = defineLua(`
local noticed = {}
for n = 1, #KEYS / 2 do
  local accounts, mark = KEYS[2 * n - 1], KEYS[2 * n]
  local added = redis.pcall('PFADD', accounts, ARGV[2])
  -- Whatever is no HyperLogLog is nobody's, and would stop every count.
  if type(added) == 'table' and (string.find(added.err, 'WRONGTYPE') or string.find(added.err, 'INVALIDOBJ')) then
    redis.call('DEL', accounts)
    added = redis.call('PFADD', accounts, ARGV[2])
  end
  if type(added) == 'table' then return added end
  local isNew = added == 1
  if redis.call('PTTL', accounts) < 0 then redis.call('PEXPIRE', accounts, ARGV[1]) end
  if redis.call('PTTL', mark) == -1 then redis.call('PEXPIRE', mark, ARGV[1]) end
  noticed[n] = 0
  if isNew and redis.call('PFCOUNT', accounts) >= tonumber(ARGV[2 + n]) and redis.call('SET', mark, 1, 'NX', 'PX', ARGV[1]) then
    noticed[n] = 1
  end
end
return noticed`)

export class ProbedNetworks {
  readonly #redis: readonly CountingRedis[]
  readonly #queuePrefix: string

  constructor(redis: readonly CountingRedis[], queuePrefix: string) {
    this.#redis = redis
    this.#queuePrefix = queuePrefix
  }

  /** Counts a failure. Resolves with the networks that are noticed by it, each once in ten minutes. */
  async failed(account: string, network: string): Promise<string[]> {
    const wide = wideNetworkOf(network)
    const networks = [network, wide]
    const keys = networks.flatMap((each) => [this.#keyOf(each), `${this.#keyOf(each)}:noticed`])
    const bounds = [WINDOW_MS, account, ACCOUNTS_OF_ADDRESS, ACCOUNTS_OF_NETWORK]
    const answer = await atHome(wide, this.#redis, ({ connection }) => countAccount(connection, keys, ...bounds))
    const noticed = toList(answer)
    return networks.filter((_, n) => noticed[n] === 1)
  }

  #keyOf(network: string): string {
    return `${this.#queuePrefix}:probed:${network}`
  }
}
