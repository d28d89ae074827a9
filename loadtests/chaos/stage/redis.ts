// Redis servers that stand in for each other: a master with Sentinels, and a Cluster of three
// masters.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { findRedis, redisCommand } from '@spillway/infra/services/redis'
import { startService } from '@spillway/infra/services/service'
import type { RedisServer, Stage } from './stage.ts'

const MASTER = 'main'
const QUORUM = 2
const DOWN_AFTER_MS = 1_000
const FAILOVER_TIMEOUT_MS = 4_000

export async function startSentinels(stage: Stage) {
  const [first, second] = await Promise.all([stage.redis(), stage.redis()])
  await second.command('REPLICAOF', first.host, first.port)
  const replication = async (server: RedisServer) => String(await server.command('INFO', 'replication'))
  await until(async () => (await replication(second)).includes('master_link_status:up'), {
    what: 'a replica in step with its master',
  })
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(stage, first)))
  const [{ url: any = '' } = {}] = sentinels
  for (const fact of ['num-other-sentinels,2', 'num-slaves,1']) {
    await until(async () => String(await redisCommand(any, 'SENTINEL', 'MASTER', MASTER)).includes(fact), {
      what: `Sentinels that know each other and the replica (${fact})`,
    })
  }

  async function isMaster(server: RedisServer): Promise<boolean> {
    const named = await Promise.all(
      sentinels.map(({ url }) => redisCommand(url, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER)),
    )
    const agreed = named.every((address) => String(address) === `127.0.0.1,${server.port}`)
    return agreed && (await replication(server)).includes('role:master')
  }

  return {
    url: `redis+sentinel://${sentinels.map(({ url }) => new URL(url).host).join(',')}/${MASTER}`,
    /** The master of the beginning, and its replica. */
    first,
    second,
    /** Resolves when the Sentinels name this server as master, and it says so itself. */
    async agreedOn(server: RedisServer) {
      await until(() => isMaster(server), { timeoutMs: 20_000, what: 'the new master' })
    },
    async close() {
      await Promise.all([...sentinels, first, second].map((server) => server.kill()))
    },
  }
}

async function startSentinel({ search, newDir }: Stage, master: RedisServer) {
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
  const { process: what } = (await findRedis({ ...search, dir }))(port)
  return await startService({
    keeper: search.keeper,
    name: 'Sentinel',
    process: { ...what, args: [...what.args.slice(0, -1), file, '--sentinel'] },
    logFile: join(dir, 'sentinel.log'),
    url: `redis://127.0.0.1:${port}`,
    ping: (url) => redisCommand(url, 'SENTINEL', 'MASTERS'),
  })
}

// A Redis Cluster of three masters, each with a third of the slots.

const MASTERS = 3
const SLOTS = 16_384

export async function startCluster(stage: Stage) {
  const started = Array.from({ length: MASTERS }, async () => {
    // Told, because the usual one is 10,000 higher, and there may be no such port.
    const busPort = await freePort()
    // Without full coverage: the slots of other masters do not concern ours.
    const coverage = { 'cluster-require-full-coverage': 'no' }
    const server = await stage.redis({ 'cluster-enabled': 'yes', 'cluster-port': String(busPort), ...coverage })
    return { busPort, server }
  })
  const nodes = await Promise.all(started)
  const masters = nodes.map(({ server }) => server)
  const [first] = masters
  const share = (n: number) => Math.floor((n * SLOTS) / MASTERS)
  for (const [n, { server, busPort }] of nodes.entries()) {
    await server.command('CLUSTER', 'ADDSLOTSRANGE', share(n), share(n + 1) - 1)
    if (n > 0) await first?.command('CLUSTER', 'MEET', server.host, server.port, busPort)
  }
  const knows = async ({ command }: RedisServer) => {
    const info = String(await command('CLUSTER', 'INFO'))
    return info.includes('cluster_state:ok') && info.includes(`cluster_slots_ok:${SLOTS}`)
  }
  await until(async () => (await Promise.all(masters.map(knows))).every(Boolean), {
    timeoutMs: 20_000,
    what: 'a cluster in which every master knows all slots',
  })

  return {
    url: `redis+cluster://${masters.map(({ url }) => new URL(url).host).join(',')}`,
    masters,
    /** The master that has the keys of this prefix. */
    async ownerOf(prefix: string) {
      const slot = Number(await first?.command('CLUSTER', 'KEYSLOT', prefix))
      const owner = masters.find((_, n) => slot >= share(n) && slot < share(n + 1))
      if (owner === undefined) throw new Error(`no master has slot ${slot}`)
      return owner
    },
    async close() {
      await Promise.all(masters.map((server) => server.close()))
    },
  }
}
