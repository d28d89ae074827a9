/** Connections to Redis in all the shapes a deployment has it: one server, Sentinel, Cluster. */
import { Cluster, type ClusterOptions, Redis } from 'ioredis'
import { gatherWrites } from './gather-writes.js'
import { parseRedisUrl, type RedisTarget } from './url.js'

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
    const options = { redisOptions: shared, enableOfflineQueue, clusterRetryStrategy: retryStrategy, ...byName(target) }
    return new Cluster(target.nodes, options).on('+node', gatherWrites)
  }
  const options = { ...shared, db: target.database, enableOfflineQueue, retryStrategy }
  const redis = new Redis({ ...options, ...(target.kind === 'sentinel' ? throughSentinels(target) : target.node) })
  gatherWrites(redis)
  return redis
}

/** Certificates are for names, which ioredis would otherwise have replaced by addresses before it looks at them. */
function byName({ login }: RedisTarget): Pick<ClusterOptions, 'dnsLookup'> {
  return login.tls ? { dnsLookup: (host, done) => done(null, host) } : {}
}

/** Left to itself, ioredis would use `tls` neither for the Sentinels nor for the server that they name. */
function throughSentinels({ nodes, master, login, sentinelLogin }: Extract<RedisTarget, { kind: 'sentinel' }>) {
  const { username, password } = sentinelLogin
  return {
    sentinels: nodes,
    name: master,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    ...(username ? { sentinelUsername: username } : {}),
    ...(password ? { sentinelPassword: password } : {}),
    ...(login.tls ? { enableTLSForSentinelMode: true, sentinelTLS: login.tls } : {}),
  }
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
