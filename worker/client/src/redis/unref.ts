/** Connections that do not keep the process alive: what waits for an answer does that by its own timer. */
import { Cluster } from 'ioredis'
import type { RedisConnection } from './connect.js'

/** From now on neither sockets nor the pauses before reconnecting keep the process alive. While it connects, it does. */
export function unrefRedis(connection: RedisConnection): void {
  connection.on('reconnecting', () => unrefPause(connection))
  if (connection instanceof Cluster) connection.on('+node', unrefRedis)
  else connection.on('connect', () => connection.stream.unref())
}

/** ioredis has no option for this. If a version renames the timer, the process ends only once Redis is back or the connection is closed. */
function unrefPause(connection: RedisConnection): void {
  const timer: unknown = Reflect.get(connection, 'reconnectTimeout')
  if (timer instanceof Object && 'unref' in timer && typeof timer.unref === 'function') timer.unref()
}
