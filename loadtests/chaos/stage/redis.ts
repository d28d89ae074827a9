// A Redis that scenarios may kill, freeze, fill and restart on the data of its append-only file.
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { type Keeper, stopOrder } from '@spillway/local/processes/keeper'
import { freePort } from '@spillway/local/processes/port'
import { until } from '@spillway/local/processes/until'
import type { RedisProgram } from '@spillway/local/services/redis-program'
import { Redis } from 'ioredis'

type Argument = string | number

export interface RedisServer {
  host: string
  port: number
  url: string
  /** One command over a connection of its own. */
  command(name: string, ...args: Argument[]): Promise<unknown>
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
  /** Starts it again on the same port and data; resolves when it answers. */
  start(): Promise<void>
  /** SIGSTOP and SIGCONT: it keeps its connections and answers nothing. */
  freeze(): void
  thaw(): void
  close(): Promise<void>
}

export interface RedisOptions {
  keeper: Keeper
  program: RedisProgram
  dir: string
  /** Lines of its configuration, beside those that all have. */
  settings: Record<string, string>
}

/** Starts a Redis on a free port of the loopback interface, without a password and durable but for the machine's own end. */
export async function startRedisServer({ keeper, program, dir, settings }: RedisOptions): Promise<RedisServer> {
  const port = await freePort()
  const { process: what, settings: where } = program(port)
  const durable = { 'maxmemory-policy': 'noeviction', appendonly: 'yes', appendfsync: 'everysec', save: '' }
  const input = Object.entries({ ...where, dir, ...durable, ...settings })
    .map(([name, value]) => `${name} ${JSON.stringify(value)}\n`)
    .join('')
  let child: ReturnType<Keeper['spawn']> | undefined
  let ended: Promise<unknown> = Promise.resolve()

  async function start(): Promise<void> {
    const logFd = openSync(join(dir, 'redis.log'), 'a')
    child = keeper.spawn({ ...what, cwd: dir, stopOrder: stopOrder.service, logFd })
    ended = once(child, 'exit')
    child.stdin?.end(input)
    await until(() => askRedis(port, 'PING'), { timeoutMs: 20_000, what: `Redis on port ${port}` })
  }

  async function kill(): Promise<void> {
    child?.kill('SIGKILL')
    await ended
  }

  await start()
  return {
    host: '127.0.0.1',
    port,
    url: `redis://127.0.0.1:${port}`,
    command: (name, ...args) => askRedis(port, name, ...args),
    kill,
    start,
    freeze: () => child?.kill('SIGSTOP'),
    thaw: () => child?.kill('SIGCONT'),
    close: kill,
  }
}

/** One command to a Redis or Sentinel of the loopback interface, over a connection of its own. */
export async function askRedis(port: number, name: string, ...args: Argument[]): Promise<unknown> {
  const client = new Redis({ host: '127.0.0.1', port, lazyConnect: true, retryStrategy: null })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await client.call(name, ...args)
  } finally {
    client.disconnect()
  }
}
