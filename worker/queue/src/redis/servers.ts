/**
 * Several independent Redis servers side by side, in one setting: URLs separated by white space,
 * each server with a complete queue. `drain:` before one says that it gets no new jobs; its jobs
 * are done and its tickets redeemed.
 */
import { createHash } from 'node:crypto'
import { parseRedisUrl } from './url.js'

export interface RedisServer {
  /** Digest of the address, by which tickets name the server; independent of passwords. */
  id: string
  /** Hosts, and what is chosen there, for operators: no user and no password. */
  address: string
  url: string
  /** The URL with today's user and password, which may have been rotated. */
  currentUrl(): string
  draining: boolean
}

/** At least one: a single server is a list of one. */
export type RedisServers = readonly [RedisServer, ...RedisServer[]]

/** White space alone does not separate: a list of hosts may have it after its commas. */
const BETWEEN = /\s+(?=(?:drain:)?(?:(?:rediss?|valkeys?)(?:\+\w+)?|unix):\/\/)/
const DRAIN = 'drain:'

/**
 * Parses REDIS_URL. Errors never quote it.
 *
 * @param current reads the setting again for each new connection [it never changes]
 */
export function parseRedisServers(urls: string, current?: () => string): RedisServers {
  const [first = '', ...others] = urls.split(BETWEEN)
  const servers: RedisServers = [serverOf(first, current), ...others.map((entry) => serverOf(entry, current))]
  if (new Set(servers.map(({ id }) => id)).size < servers.length)
    throw new Error('REDIS_URL names a Redis server twice')
  if (servers.every(({ draining }) => draining))
    throw new Error('REDIS_URL must leave a Redis server that is not drained')
  return servers
}

function serverOf(entry: string, current?: () => string): RedisServer {
  const draining = entry.startsWith(DRAIN)
  const url = draining ? entry.slice(DRAIN.length) : entry
  const address = addressOf(url)
  const id = createHash('sha256').update(address).digest('hex').slice(0, 12)
  const currentUrl = () => (current && parseRedisServers(current()).find((server) => server.id === id)?.url) ?? url
  return { id, address, url, currentUrl, draining }
}

function addressOf(url: string): string {
  const target = parseRedisUrl(url)
  const nodes = target.kind === 'single' ? [target.node] : target.nodes
  const hosts = nodes
    .map((node) =>
      'path' in node ? node.path : `${node.host.includes(':') ? `[${node.host}]` : node.host}:${node.port}`,
    )
    .sort()
  const master = target.kind === 'sentinel' ? `/${target.master}` : ''
  const database = target.kind === 'cluster' || target.database === 0 ? '' : `/${target.database}`
  return `${hosts.join(',')}${master}${database}`
}
