/** Connects to Redis as a single server, through Sentinel, or as a Cluster. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { within } from '@spillway/common/within'
import { Cluster, type ClusterOptions, Redis } from 'ioredis'
import { type LoginOptions, own } from '../inside/ioredis.js'
import { parseRedisUrl, type RedisTarget, type TlsFiles } from './url.js'

export type RedisConnection = Redis | Cluster

/**
 * `producer` fails fast, because a request waits: no commands are queued while Redis is
 * unreachable, and no command outlives {@link PRODUCER_COMMAND_TIMEOUT_MS}. `consumer` queues
 * commands and retries for ever, because a worker can only wait.
 */
export type ConnectionRole = 'producer' | 'consumer'

/** How long a gateway waits for the answer to a command. */
const PRODUCER_COMMAND_TIMEOUT_MS = 2_000
const CONNECT_TIMEOUT_MS = 2_000
/**
 * A connection that receives nothing for this long while an answer is due is replaced: it may be
 * dead. Longer than any command takes, workers' blocking reads included.
 */
const SOCKET_TIMEOUT_MS = 2_500
/** After a failover all commands in flight fail together, and reconnect once in this time. */
const READONLY_DEBOUNCE_MS = 100
const RECONNECT_MAX_MS = 500

/**
 * Opens a connection. Throws for an invalid URL and for unreadable files alone.
 *
 * @param currentUrl reads the URL again each time that it connects, for a rotated user, password or
 *   certificate; the place stays the same [it never changes]
 */
export function connectRedis(url: string, role: ConnectionRole, currentUrl = () => url): RedisConnection {
  const target = parseRedisUrl(url)
  const retryStrategy = (attempt: number) => Math.min(attempt * 50, RECONNECT_MAX_MS)
  const { family } = target.login
  const shared = {
    ...loginOf(target),
    ...(family === undefined ? {} : { family }),
    currentLogin: () => loginOf(parseRedisUrl(currentUrl())),
    ...(role === 'producer'
      ? { maxRetriesPerRequest: 1, commandTimeout: PRODUCER_COMMAND_TIMEOUT_MS }
      : { maxRetriesPerRequest: null }),
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    reconnectOnError: reconnectOnReadOnly(),
    // ioredis would subscribe again without a catch: a refusal would end the process. Subscribers
    // do it themselves.
    autoResubscribe: false,
  }
  const enableOfflineQueue = role === 'consumer'
  if (target.kind === 'cluster') {
    const options = {
      redisOptions: shared,
      enableOfflineQueue,
      clusterRetryStrategy: retryStrategy,
      ...keepHostNames(target),
    }
    return own(new Cluster(target.nodes, options))
  }
  const options = { ...shared, db: target.database, enableOfflineQueue, retryStrategy }
  return own(new Redis({ ...options, ...(target.kind === 'sentinel' ? throughSentinels(target) : target.node) }))
}

/** What a connection authenticates with. By default, ioredis uses `tls` for no Sentinel. */
function loginOf(target: RedisTarget): LoginOptions {
  const { username, password, tls: files } = target.login
  const tls = files && readTlsFiles(files)
  const login = { username, password, ...(tls ? { tls } : {}) }
  if (target.kind !== 'sentinel') return login
  const { username: sentinelUsername, password: sentinelPassword } = target.sentinelLogin
  return { ...login, sentinelUsername, sentinelPassword, ...(tls ? { sentinelTLS: tls } : {}) }
}

/** Closes a connection: with QUIT when it is open, so that commands are answered. */
export async function quitRedis(connection: RedisConnection): Promise<void> {
  if (connection.status === 'ready') await connection.quit().catch(() => undefined)
  connection.disconnect()
}

/** Certificates are checked against names; ioredis ignores the family where it resolves names. */
function keepHostNames({ login }: RedisTarget): Pick<ClusterOptions, 'dnsLookup'> {
  return login.tls || login.family !== undefined ? { dnsLookup: (host, done) => done(null, host) } : {}
}

/** By default, ioredis uses `tls` not for the server that Sentinels name. */
function throughSentinels({ nodes, master, login }: Extract<RedisTarget, { kind: 'sentinel' }>) {
  return {
    sentinels: nodes,
    name: master,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    ...(login.tls ? { enableTLSForSentinelMode: true } : {}),
  }
}

type TlsContents = { [name in keyof TlsFiles]: Buffer }

/** Throws a sentence with the parameter, without the path and the contents. */
function readTlsFiles(files: TlsFiles): TlsContents {
  const contents: TlsContents = {}
  for (const name of ['ca', 'cert', 'key'] as const) {
    const file = files[name]
    if (file === undefined) continue
    try {
      contents[name] = readFileSync(file)
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
      throw new Error(`REDIS_URL names a file as ${name} that cannot be read (${code})`)
    }
  }
  try {
    createSecureContext(contents)
  } catch {
    throw new Error(
      'REDIS_URL names files as ca, cert or key that are not certificates and a key in PEM that belong together',
    )
  }
  return contents
}

/** After a failover the old master answers writes with READONLY: reconnecting finds the new one. */
function reconnectOnReadOnly(): (error: Error) => boolean {
  let reconnectedAt = Number.NEGATIVE_INFINITY
  return (error) => {
    const now = performance.now()
    if (!error.message.startsWith('READONLY') || now - reconnectedAt < READONLY_DEBOUNCE_MS) return false
    reconnectedAt = now
    return true
  }
}

const NEW_CONNECTION_MS = 3_000

/** Asks Redis on a new connection. Undefined where it does not answer. Never rejects. */
export async function askOnNewConnection<T>(
  redisUrl: string,
  ask: (redis: RedisConnection) => Promise<T>,
): Promise<T | undefined> {
  const redis = connectRedis(redisUrl, 'producer')
  try {
    await once(redis, 'ready', { signal: AbortSignal.timeout(NEW_CONNECTION_MS) })
    return await within(NEW_CONNECTION_MS, ask(redis))
  } catch {
    return undefined
  } finally {
    // Without a listener, ioredis prints later errors.
    redis.on('error', () => undefined)
    redis.disconnect()
  }
}
