// A master with a replica, and three Sentinels that agree on when it is replaced.
import { openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stopOrder } from '@spillway/local/processes/keeper'
import { freePort } from '@spillway/local/processes/port'
import { until } from '@spillway/local/processes/until'
import { Redis } from 'ioredis'
import type { RedisServer } from './redis.ts'
import type { Stage } from './stage.ts'

export interface Sentinels {
  /** For gateways and workers. */
  url: string
  /** The one that was master at the beginning, and the other one. */
  first: RedisServer
  second: RedisServer
  /** Until the Sentinels name this server as master, and it says so itself. */
  agreedOn(server: RedisServer): Promise<void>
  close(): Promise<void>
}

const MASTER = 'main'
const QUORUM = 2
const DOWN_AFTER_MS = 1_000
const FAILOVER_TIMEOUT_MS = 4_000

export async function startSentinels(stage: Stage): Promise<Sentinels> {
  const [first, second] = await Promise.all([stage.redis(), stage.redis()])
  await second.command('REPLICAOF', first.host, first.port)
  await until(async () => String(await second.command('INFO', 'replication')).includes('master_link_status:up'), {
    what: 'a replica in step with its master',
  })
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(stage, first)))
  const [anyPort = 0] = sentinels.map(({ port }) => port)
  await until(async () => String(await ask(anyPort, 'MASTER', MASTER)).includes('num-other-sentinels,2'), {
    what: 'three Sentinels that know each other',
  })
  await until(async () => String(await ask(anyPort, 'MASTER', MASTER)).includes('num-slaves,1'), {
    timeoutMs: 15_000,
    what: 'Sentinels that know the replica',
  })

  return {
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${MASTER}`,
    first,
    second,
    async agreedOn(server) {
      await until(
        async () => {
          const named = await Promise.all(sentinels.map(({ port }) => ask(port, 'GET-MASTER-ADDR-BY-NAME', MASTER)))
          const info = String(await server.command('INFO', 'replication'))
          return (
            info.includes('role:master') && named.every((address) => String(address) === `127.0.0.1,${server.port}`)
          )
        },
        { timeoutMs: 20_000, what: 'the new master' },
      )
    },
    async close() {
      for (const { end } of sentinels) end()
      await Promise.all([first.close(), second.close()])
    },
  }
}

async function startSentinel({ keeper, program, newDir }: Stage, master: RedisServer) {
  const port = await freePort()
  const dir = newDir('sentinel')
  // A Sentinel writes what it learns into its configuration, so that has to be a file.
  const file = join(dir, 'sentinel.conf')
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${JSON.stringify(dir)}`,
    `sentinel monitor ${MASTER} ${master.host} ${master.port} ${QUORUM}`,
    `sentinel down-after-milliseconds ${MASTER} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER} ${FAILOVER_TIMEOUT_MS}`,
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  const { process: what } = program(port)
  const logFd = openSync(join(dir, 'sentinel.log'), 'a')
  const args = [...what.args.slice(0, -1), file, '--sentinel']
  const child = keeper.spawn({ ...what, args, cwd: dir, stopOrder: stopOrder.service, logFd })
  child.stdin?.end()
  await until(() => ask(port, 'MASTERS'), { what: `a Sentinel on port ${port}` })
  return { port, end: () => child.kill('SIGKILL') }
}

async function ask(port: number, ...question: string[]): Promise<unknown> {
  const client = new Redis({ host: '127.0.0.1', port, lazyConnect: true, retryStrategy: null })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await client.call('SENTINEL', ...question)
  } finally {
    client.disconnect()
  }
}
