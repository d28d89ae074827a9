// A Redis that scenarios may kill, freeze, fill and restart on the data of its append-only file.
import { type RedisOptions, redisCommand, startRedis } from '@spillway/local/services/redis'

export type RedisServer = Awaited<ReturnType<typeof startRedisServer>>

/** Starts a Redis on a free port of the loopback interface, without a password and durable but for the machine's own end. */
export async function startRedisServer(options: RedisOptions) {
  const service = await startRedis(options)
  return {
    ...service,
    host: '127.0.0.1',
    port: Number(new URL(service.url).port),
    /** One command over a connection of its own. */
    command: (name: string, ...args: (string | number)[]) => redisCommand(service.url, name, ...args),
    /** SIGSTOP and SIGCONT: it keeps its connections and answers nothing. */
    freeze: () => service.signal('SIGSTOP'),
    thaw: () => service.signal('SIGCONT'),
    close: service.kill,
  }
}
