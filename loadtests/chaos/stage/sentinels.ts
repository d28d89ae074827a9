// A master with a replica, and three Sentinels that agree on when it is replaced.
import { openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stopOrder } from '@spillway/local/processes/keeper'
import { freePort } from '@spillway/local/processes/port'
import { until } from '@spillway/local/processes/until'
import { askRedis, type RedisServer } from './redis.ts'
import type { Stage } from './stage.ts'

export interface Sentinels {
  /** For gateways and workers. */
  url: string
  /** The master of the beginning, and its replica. */
  first: RedisServer
  second: RedisServer
  /** Resolves when the Sentinels name this server as master, and it says so itself. */
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
  const replication = async (server: RedisServer) => String(await server.command('INFO', 'replication'))
  await until(async () => (await replication(second)).includes('master_link_status:up'), {
    what: 'a replica in step with its master',
  })
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(stage, first)))
  const ports = sentinels.map(({ port }) => port)
  for (const fact of ['num-other-sentinels,2', 'num-slaves,1']) {
    await until(async () => String(await askRedis(ports[0] ?? 0, 'SENTINEL', 'MASTER', MASTER)).includes(fact), {
      what: `Sentinels that know each other and the replica (${fact})`,
    })
  }

  async function isMaster(server: RedisServer): Promise<boolean> {
    const named = await Promise.all(ports.map((port) => askRedis(port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER)))
    const agreed = named.every((address) => String(address) === `127.0.0.1,${server.port}`)
    return agreed && (await replication(server)).includes('role:master')
  }

  return {
    url: `redis+sentinel://${ports.map((port) => `127.0.0.1:${port}`).join(',')}/${MASTER}`,
    first,
    second,
    async agreedOn(server) {
      await until(() => isMaster(server), { timeoutMs: 20_000, what: 'the new master' })
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
  await until(() => askRedis(port, 'SENTINEL', 'MASTERS'), { what: `a Sentinel on port ${port}` })
  return { port, end: () => child.kill('SIGKILL') }
}
