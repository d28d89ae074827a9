// A Redis Cluster of three masters, each with a third of the slots.
import { freePort } from '@spillway/local/processes/port'
import { until } from '@spillway/local/processes/until'
import type { RedisServer, Stage } from './stage.ts'

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
    /** For gateways and workers. */
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
