// The stage of all scenarios of a run: the packages built, a PostgreSQL with accounts in it, and a Redis program. Every scenario starts
// its own Redis, gateways and workers on it, and they end with it.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { type Keeper, openKeeper } from '@spillway/local/processes/keeper'
import { programsDir } from '@spillway/local/processes/repository'
import { findRedis } from '@spillway/local/services/find-redis'
import type { RedisProgram } from '@spillway/local/services/redis-program'
import { startOwnServices } from '@spillway/local/testing/services'
import { type Accounts, createAccounts } from '../../load/accounts.ts'
import { type PostgresServer, restartablePostgres } from './postgres.ts'
import { type RedisServer, startRedisServer } from './redis.ts'

export interface Stage {
  keeper: Keeper
  program: RedisProgram
  postgres: PostgresServer
  accounts: Accounts
  /** A folder of its own, new at each call. */
  newDir(purpose: string): string
  redis(settings?: Record<string, string>): Promise<RedisServer>
  /** Ends everything and deletes every folder. */
  close(): Promise<void>
}

/** @param say prints notices, for instance before a download */
export async function openStage(say: (sentence: string) => void): Promise<Stage> {
  const keeper = openKeeper()
  try {
    const services = await startOwnServices({ keeper, purpose: 'chaos', packages: ['@spillway/loadtests'], say })
    const { dir } = services
    const program = await findRedis({ keeper, dir, durable: true, programsDir, say })
    const postgres = restartablePostgres(keeper, services)
    const close = async () => {
      await keeper.close()
      await services.close()
    }
    let closing: Promise<void> | undefined
    const newDir = (purpose: string) => mkdtempSync(join(dir, `${purpose}-`))
    return {
      keeper,
      program,
      postgres,
      accounts: createAccounts(postgres.url),
      newDir,
      redis: (settings = {}) => startRedisServer({ keeper, program, dir: newDir('redis'), settings }),
      close: () => (closing ??= close()),
    }
  } catch (error) {
    await keeper.close()
    throw error
  }
}
