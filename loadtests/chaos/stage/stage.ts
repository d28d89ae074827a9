// The stage of all scenarios of a run: the packages built, a PostgreSQL with accounts in it, and a Redis program. Every scenario starts
// its own Redis, gateways and workers on it, and they end with it.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { Keeper } from '@spillway/local/processes/keeper'
import { startOwnServices } from '@spillway/local/rig/services'
import { startRedis } from '@spillway/local/services/redis'
import { createAccounts } from '../../load/accounts.ts'

export type Stage = Awaited<ReturnType<typeof openStage>>

/** A Redis server that scenarios may kill, freeze, fill and restart on the data of its append-only file. */
export type RedisServer = Awaited<ReturnType<Stage['redis']>>

/** @param say prints notices, for instance before a download */
export async function openStage(keeper: Keeper, say: (sentence: string) => void) {
  const services = await startOwnServices({ keeper, purpose: 'chaos', packages: ['@spillway/loadtests'], say })
  const { databaseUrl: url } = services
  /** Options of every search for a Redis server, without its data folder. */
  const search = { keeper, durable: true, say }
  const newDir = (purpose: string) => mkdtempSync(join(services.dir, `${purpose}-`))
  return {
    keeper,
    search,
    postgres: { ...services.postgres, url },
    accounts: createAccounts(url),
    /** A folder of its own, new at each call. */
    newDir,
    /** On a free port of the loopback interface, without a password. */
    async redis(settings: Record<string, string> = {}) {
      const dir = newDir('redis')
      const server = await startRedis({ ...search, dir, logFile: join(dir, 'redis.log'), preferredPort: 0, settings })
      const { hostname: host, port } = new URL(server.url)
      // It may be frozen when it is closed.
      return { ...server, host, port: Number(port), close: server.kill }
    },
    close: () => services.close(),
  }
}
