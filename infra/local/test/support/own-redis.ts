// A Redis server that a test has to itself, because it has it refuse what others rely on, or kills
// it.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keeper } from '@spillway/infra/processes/keeper'
import { startRedis } from '@spillway/infra/services/redis'

/** Starts it with a password on a free port; `close` ends it and deletes its data. */
export async function startOwnRedis() {
  const keeper = new Keeper()
  const dir = await mkdtemp(join(tmpdir(), 'spillway-redis-'))
  const service = await startRedis({
    keeper,
    dir: join(dir, 'data'),
    durable: false,
    logFile: join(dir, 'redis.log'),
    password: 'secret',
    say: () => undefined,
  })
  async function close(): Promise<void> {
    await keeper.close()
    await rm(dir, { recursive: true, force: true })
  }
  return { ...service, close }
}
