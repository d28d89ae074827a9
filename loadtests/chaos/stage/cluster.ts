// A Redis Cluster of three masters, each with a third of the slots.
import { freePort } from '@spillway/local/processes/port'
import { until } from '@spillway/local/processes/until'
import type { RedisServer } from './redis.ts'
import type { Stage } from './stage.ts'

export interface RedisCluster {
  /** For gateways and workers. */
  url: string
  masters: readonly RedisServer[]
  /** The master that has the keys of this prefix. */
  ownerOf(prefix: string): Promise<RedisServer>
  close(): Promise<void>
}

const MASTERS = 3
const SLOTS = 16_384

export async function startCluster(stage: Stage): Promise<RedisCluster> {
  const servers = await Promise.all(
    Array.from({ length: MASTERS }, async () =>
      stage.redis({
        'cluster-enabled': 'yes',
        // Told, because the usual one is 10,000 higher, and there may be no such port.
        'cluster-port': String(await freePort()),
        // The other slots are none of our business.
        'cluster-require-full-coverage': 'no',
      }),
    ),
  )
  const share = (n: number) => Math.floor((n * SLOTS) / MASTERS)
  for (const [n, server] of servers.entries()) {
    await server.command('CLUSTER', 'ADDSLOTSRANGE', share(n), share(n + 1) - 1)
  }
  const [first, ...others] = servers
  for (const { host, port, command } of others) {
    const [, busPort] = await configOf(command, 'cluster-port')
    await first?.command('CLUSTER', 'MEET', host, port, busPort ?? '')
  }
  const knows = async ({ command }: RedisServer) => {
    const info = String(await command('CLUSTER', 'INFO'))
    return info.includes('cluster_state:ok') && info.includes(`cluster_slots_ok:${SLOTS}`)
  }
  await until(async () => (await Promise.all(servers.map(knows))).every(Boolean), {
    timeoutMs: 20_000,
    what: 'a cluster that is of one mind',
  })

  return {
    url: `redis+cluster://${servers.map(({ host, port }) => `${host}:${port}`).join(',')}`,
    masters: servers,
    async ownerOf(prefix) {
      const slot = Number(await first?.command('CLUSTER', 'KEYSLOT', prefix))
      const owner = servers.find((_, n) => slot >= share(n) && slot < share(n + 1))
      if (owner === undefined) throw new Error(`no master has slot ${slot}`)
      return owner
    },
    async close() {
      await Promise.all(servers.map((server) => server.close()))
    },
  }
}

async function configOf(command: RedisServer['command'], name: string): Promise<string[]> {
  const answer = await command('CONFIG', 'GET', name)
  return Array.isArray(answer) ? answer.map(String) : []
}
