// PostgreSQL of root in a folder that other users may not enter, as a home directory of mode 700.
import assert from 'node:assert/strict'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { Keeper } from '@spillway/infra/processes/keeper'
import { startPostgres } from '@spillway/infra/services/postgres'
import { query } from '@spillway/infra/services/query'
import { test } from 'vitest'

const notRoot = process.getuid?.() === 0 ? false : 'only root runs PostgreSQL as another user'

test.skipIf(notRoot)('it starts there, as nobody, and keeps its data', async (t) => {
  const dir = await scratchDir(t)
  await chmod(dir, 0o700)
  const start = async () => {
    const keeper = new Keeper()
    t.onTestFinished(() => keeper.close())
    const paths = { dir: join(dir, 'postgres'), logFile: join(dir, 'log') }
    const say = () => undefined
    return await startPostgres({ keeper, ...paths, password: 'secret', durable: false, say })
  }
  const first = await start()
  await first.close()
  const second = await start()
  assert.deepEqual(await query(second.url, 'SELECT 1 AS one'), [{ one: 1 }])
  await second.close()
})
