// What all scenarios of a run stand on: the packages built, a PostgreSQL with accounts in it, and a Redis program. Every
// scenario starts its own Redis, gateways and workers from here, and they end with it.
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Keeper, openKeeper } from '@spillway/local/processes/keeper'
import { defaultStateDir, programsDir } from '@spillway/local/processes/repository'
import { findRedis } from '@spillway/local/services/find-redis'
import { removeHome } from '@spillway/local/services/postgres-user'
import type { RedisProgram } from '@spillway/local/services/redis-program'
import { build } from '@spillway/local/start/build'
import { type Accounts, createAccounts } from '../../load/accounts.ts'
import { type PostgresServer, startPostgresServer } from './postgres.ts'
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

/** @param say told what is about to be fetched */
export async function openStage(say: (sentence: string) => void): Promise<Stage> {
  const keeper = openKeeper()
  const dir = join(defaultStateDir, `chaos-${process.pid}-${randomBytes(3).toString('hex')}`)
  mkdirSync(dir, { recursive: true })
  const newDir = (purpose: string) => {
    const made = join(dir, `${purpose}-${randomBytes(3).toString('hex')}`)
    mkdirSync(made)
    return made
  }
  const close = async () => {
    await keeper.close()
    await removeHome(join(dir, 'postgres'))
    rmSync(dir, { recursive: true, force: true })
  }
  try {
    await build(keeper, ['@spillway/loadtests'])
    const program = await findRedis({ keeper, dir, durable: true, programsDir, say })
    const postgres = await startPostgresServer(keeper, dir)
    return {
      keeper,
      program,
      postgres,
      accounts: createAccounts(postgres.url),
      newDir,
      redis: (settings = {}) => startRedisServer({ keeper, program, dir: newDir('redis'), settings }),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}
