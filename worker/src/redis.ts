/**
 * Connections to Redis in all the shapes a deployment has it: one server, Sentinel, Cluster. The shape is in the URL:
 * `redis://` and `rediss://` (TLS), `redis+sentinel://user:password@host:port,host:port/master-name/db`,
 * `redis+cluster://user:password@host:port,host:port`, and both of the latter with `rediss+` for TLS.
 */
import { Cluster, Redis } from 'ioredis'

export type RedisConnection = Redis | Cluster

/**
 * `producer` fails fast, because a request is waiting: nothing is queued while Redis is away and no command outlives
 * {@link PRODUCER_COMMAND_TIMEOUT_MS}. `consumer` tries for ever, because a worker has nothing better to do.
 */
export type ConnectionRole = 'producer' | 'consumer'

/** How long a gateway waits for Redis to answer one command. */
const PRODUCER_COMMAND_TIMEOUT_MS = 2_000
const CONNECT_TIMEOUT_MS = 2_000
/**
 * A connection on which nothing is heard for this long while an answer is due is dead, though nobody closed it: it is replaced.
 * Longer than any command takes, the blocking reads of workers included.
 */
const SILENCE_MS = 2_500
/** Commands in flight hear of a failover all at once, and the connection is dropped for all of them. */
const DROP_ONCE_MS = 100
const RECONNECT_MAX_MS = 500
const DEFAULT_PORT = 6379
const DEFAULT_SENTINEL_PORT = 26379

/** Opens a connection; throws only when the URL is not one of the forms above. Failures to connect come as `error` events. */
export function connectRedis(url: string, role: ConnectionRole): RedisConnection {
  const target = parseRedisUrl(url)
  const retryStrategy = (attempt: number) => Math.min(attempt * 50, RECONNECT_MAX_MS)
  const shared = {
    ...target.login,
    ...(role === 'producer'
      ? { maxRetriesPerRequest: 1, commandTimeout: PRODUCER_COMMAND_TIMEOUT_MS }
      : { maxRetriesPerRequest: null }),
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_MS,
    reconnectOnError: dropReadOnly(),
  }
  const enableOfflineQueue = role === 'consumer'
  if (target.kind === 'cluster') {
    return new Cluster(target.nodes, { redisOptions: shared, enableOfflineQueue, clusterRetryStrategy: retryStrategy })
  }
  const options = { ...shared, db: target.database, enableOfflineQueue, retryStrategy }
  if (target.kind === 'sentinel') {
    const sentinels = { sentinels: target.nodes, name: target.master, sentinelCommandTimeout: CONNECT_TIMEOUT_MS }
    return new Redis({ ...options, ...sentinels })
  }
  return new Redis({ ...options, ...target.node })
}

/** After a failover the old master answers writes with READONLY: drop it and find the new one. */
function dropReadOnly(): (error: Error) => boolean {
  let droppedAt = Number.NEGATIVE_INFINITY
  return (error) => {
    const now = performance.now()
    if (!error.message.startsWith('READONLY') || now - droppedAt < DROP_ONCE_MS) return false
    droppedAt = now
    return true
  }
}

interface HostPort {
  host: string
  port: number
}

interface Login {
  username?: string
  password?: string
  tls?: object
}

type RedisTarget =
  | { kind: 'single'; login: Login; node: HostPort; database: number }
  | { kind: 'sentinel'; login: Login; nodes: HostPort[]; master: string; database: number }
  | { kind: 'cluster'; login: Login; nodes: HostPort[] }

/**
 * Takes a Redis URL apart. Special characters of user name and password are written as %XX. Its errors never repeat any of
 * the URL: what looks like a host may be half a password.
 */
export function parseRedisUrl(url: string): RedisTarget {
  const form = /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^/@]+)(?:\/(.*))?$/.exec(url)
  if (form === null) {
    throw new Error(
      'REDIS_URL must be redis://, redis+sentinel://host:port,…/master or redis+cluster://host:port,… (rediss for TLS)',
    )
  }
  const [, scheme, kind, username, password, hosts = '', path = ''] = form
  const [first, ...others] = hosts
    .split(',')
    .map((entry) => parseHost(entry, kind === 'sentinel' ? DEFAULT_SENTINEL_PORT : DEFAULT_PORT))
  if (first === undefined) throw new Error('REDIS_URL names no host')
  const nodes = [first, ...others]
  const login: Login = {
    ...(username ? { username: decode(username) } : {}),
    ...(password ? { password: decode(password) } : {}),
    ...(scheme === 'rediss' ? { tls: {} } : {}),
  }
  if (kind === 'cluster') {
    if (path !== '') throw new Error('REDIS_URL for Cluster must end with its hosts: a cluster has one database')
    return { kind, login, nodes }
  }
  if (kind === 'sentinel') {
    const [, master, database] = /^([^/]+)(?:\/(.*))?$/.exec(path) ?? []
    if (!master) throw new Error('REDIS_URL for Sentinel must name the master: redis+sentinel://host:port/master')
    return { kind, login, nodes, master, database: parseDatabase(database) }
  }
  if (others.length > 0)
    throw new Error('REDIS_URL must name one host: for more, redis+sentinel:// or redis+cluster://')
  return { kind: 'single', login, node: first, database: parseDatabase(path) }
}

function parseHost(entry: string, defaultPort: number): HostPort {
  const [, host, port] = /^\s*(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?\s*$/i.exec(entry) ?? []
  if (host === undefined || Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535)
    throw new Error('REDIS_URL must name hosts as host or host:port, with / : @ of a password written as %2F %3A %40')
  return { host: host.replace(/^\[|\]$/g, ''), port: port === undefined ? defaultPort : Number(port) }
}

function parseDatabase(text = ''): number {
  if (!/^\d{0,6}$/.test(text)) throw new Error('REDIS_URL must end with the number of a database, or nothing')
  return Number(text)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('REDIS_URL has a % in its user or password that is no %XX: write it as %25')
  }
}
