/** Connects to Redis as a single server, through Sentinel, or as a Cluster. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { within } from '@spillway/common/within'
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis'
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
 * A connection is replaced if it receives nothing for this long while an answer is due: it may be
 * dead. No command takes longer, not even a worker's blocking read.
 */
const SOCKET_TIMEOUT_MS = 5_000
/** After a failover all commands in flight fail together: they cause one reconnect in this time. */
const READONLY_DEBOUNCE_MS = 100
const RECONNECT_MAX_MS = 500

/**
 * Opens a connection. Throws only for an invalid URL and for unreadable files.
 *
 * @param currentUrl reads the URL again at each connect, for a rotated user, password or
 *   certificate; the server stays the same [the URL never changes]
 */
export function connectRedis(url: string, role: ConnectionRole, currentUrl = () => url): RedisConnection {
  const target = parseRedisUrl(url)
  const currentLogin = () => loginOf(parseRedisUrl(currentUrl()))
  const retryStrategy = (attempt: number) => Math.min(attempt * 50, RECONNECT_MAX_MS)
  const { family } = target.login
  const shared = {
    ...loginOf(target),
    ...(family === undefined ? {} : { family }),
    ...(role === 'producer'
      ? { maxRetriesPerRequest: 1, commandTimeout: PRODUCER_COMMAND_TIMEOUT_MS }
      : { maxRetriesPerRequest: null }),
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    reconnectOnError: reconnectOnReadOnly(),
    // ioredis does not catch a refusal when it subscribes again, which would end the process.
    // Subscribers subscribe again themselves.
    autoResubscribe: false,
    // ioredis ignores errors of the command for it, which would be the refusal of a server without
    // room for another connection.
    disableClientInfo: true,
  }
  const enableOfflineQueue = role === 'consumer'
  if (target.kind === 'cluster') {
    const options = {
      redisOptions: shared,
      enableOfflineQueue,
      clusterRetryStrategy: retryStrategy,
      ...keepHostNames(target),
    }
    return prepared(new Cluster(target.nodes, options), currentLogin)
  }
  const options = { ...shared, db: target.database, enableOfflineQueue, retryStrategy }
  const place = target.kind === 'sentinel' ? throughSentinels(target) : target.node
  return prepared(new Redis({ ...options, ...place }), currentLogin)
}

/** The event of a connection that has a duplicate, which is its argument. */
export const DUPLICATE = 'duplicate'

/** The options with which a connection authenticates. */
type Login = Pick<
  RedisOptions,
  'username' | 'password' | 'tls' | 'sentinelUsername' | 'sentinelPassword' | 'sentinelTLS'
>

/** Prepares a connection and its duplicates, such as BullMQ's for blocking reads. */
function prepared<T extends RedisConnection>(connection: T, currentLogin: () => Login): T {
  const announced = <Made extends RedisConnection>(made: Made) => {
    connection.emit(DUPLICATE, made)
    return made
  }
  // ioredis reads the options at each connect. If they cannot be renewed, the last ones stay.
  const renew = (options: RedisOptions) => {
    try {
      Object.assign(options, currentLogin())
    } catch (error) {
      connection.emit('error', error)
    }
  }
  if (connection instanceof Redis) {
    writeTogether(connection)
    connection.on('reconnecting', () => renew(connection.options))
    const duplicate = connection.duplicate.bind(connection)
    connection.duplicate = (...options) => {
      renew(connection.options)
      return announced(prepared(duplicate(...options), currentLogin))
    }
  } else {
    connection.on('+node', (node: Redis) => {
      writeTogether(node)
      renew(node.options)
    })
    const duplicate = connection.duplicate.bind(connection)
    connection.duplicate = (...options) => announced(prepared(duplicate(...options), currentLogin))
  }
  endWhenDisconnected(connection)
  return connection
}

/**
 * Writes the commands of one turn of the event loop together: each write is a system call, and wakes
 * Redis. With 100 logins at once, a login takes three reads and writes of the gateway instead of
 * eight, and a fifth less of Redis's processor time.
 */
function writeTogether(connection: Redis): void {
  const send = connection.sendCommand.bind(connection)
  let corked: Redis['stream'] | undefined
  connection.sendCommand = (...command) => {
    // There is none before the first attempt to connect.
    const stream: Redis['stream'] | undefined = connection.stream
    if (stream !== undefined && stream !== corked) {
      corked = stream
      stream.cork()
      setImmediate(() => {
        corked = undefined
        stream.uncork()
      })
    }
    return send(...command)
  }
}

/**
 * A connection that is closed while it waits to reconnect would never emit `end`, and would leave
 * its commands unanswered (redis/ioredis#2169). So its next attempt becomes its last.
 */
function endWhenDisconnected(connection: RedisConnection): void {
  const name = connection instanceof Redis ? 'retryStrategy' : 'clusterRetryStrategy'
  const strategy: unknown = Reflect.get(connection.options, name)
  const disconnect = connection.disconnect.bind(connection)
  let isEnding = false
  connection.disconnect = (reconnect = false) => {
    if (reconnect || connection.status !== 'reconnecting') return disconnect(reconnect)
    if (isEnding) return
    isEnding = true
    Object.assign(connection.options, { [name]: () => null })
    const connected = () => disconnect()
    connection.once('connect', connected)
    connection.once('end', () => {
      connection.off('connect', connected)
      Object.assign(connection.options, { [name]: strategy })
      isEnding = false
    })
  }
}

/**
 * From now on the connection keeps the process alive only while it connects or waits to reconnect.
 * A call that waits for an answer keeps the process alive by its own timer.
 */
export function unrefRedis(connection: RedisConnection): void {
  if (connection instanceof Redis) connection.on('connect', () => connection.stream.unref())
  else connection.on('+node', unrefRedis)
}

/** By default ioredis does not use `tls` for Sentinels. */
function loginOf(target: RedisTarget): Login {
  const { username, password, tls: files } = target.login
  const tls = files && readTlsFiles(files)
  const login = { username, password, ...(tls ? { tls } : {}) }
  if (target.kind !== 'sentinel') return login
  const { username: sentinelUsername, password: sentinelPassword } = target.sentinelLogin
  return { ...login, sentinelUsername, sentinelPassword, ...(tls ? { sentinelTLS: tls } : {}) }
}

/** Closes a connection: with QUIT when it is open, so that pending commands are answered. */
export async function quitRedis(connection: RedisConnection): Promise<void> {
  if (connection.status === 'ready') await connection.quit().catch(() => undefined)
  connection.disconnect()
}

/** Certificates are checked against names; ioredis ignores the family where it resolves names. */
function keepHostNames({ login }: RedisTarget): Pick<ClusterOptions, 'dnsLookup'> {
  return login.tls || login.family !== undefined ? { dnsLookup: (host, done) => done(null, host) } : {}
}

/** By default ioredis does not use `tls` for the master that Sentinel reports. */
function throughSentinels({ nodes, master, login }: Extract<RedisTarget, { kind: 'sentinel' }>) {
  return {
    sentinels: nodes,
    name: master,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    ...(login.tls ? { enableTLSForSentinelMode: true } : {}),
  }
}

type TlsContents = { [name in keyof TlsFiles]: Buffer }

/** Throws an error that names the parameter, but not the path or the contents. */
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

/** Asks Redis on a new connection. Undefined if Redis does not answer. Never rejects. */
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
