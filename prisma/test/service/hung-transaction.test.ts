// A transaction that Prisma gives up while the server does not answer.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { type Prisma, poolUse } from '../../src/index.ts'
import { openDatabases, opened, rows } from '../databases.ts'

const { migratedUrl } = await openDatabases()

const lockAwaited = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

test('queries after a transaction that hung and could not be ended are not written into that transaction', async (t) => {
  const aside = opened(t, migratedUrl)
  const database = opened(t, migratedUrl, { poolSize: 1, statementTimeoutMs: 2_000 })
  await database.user.count()
  /** Rejects when Prisma gives it up. */
  const hang = () =>
    database.$transaction(
      async (transaction) => {
        // The server ends nothing by itself, as if it were frozen.
        await transaction.$executeRaw`SET LOCAL statement_timeout = 0`
        await transaction.$executeRaw`SELECT FROM pg_advisory_xact_lock(1)`
      },
      { timeout: 2_000, maxWait: 60_000 },
    )
  const hold = async (holder: Prisma.TransactionClient) => {
    await holder.$executeRaw`SELECT FROM pg_advisory_xact_lock(1)`
    // Where the machine stands still, one may be given up before it waits for the lock.
    await until(async () => {
      await assert.rejects(hang())
      return (await rows(migratedUrl, lockAwaited)).length > 0
    })
    await until(() => poolUse(database).busy === 0)
  }
  await aside.$transaction(hold, { timeout: 60_000 })

  const id = '00000000-0000-4000-8000-000000000000'
  await database.user.create({ data: { id, email: 'a@example.test', passwordHash: 'x' } })
  assert.deepEqual(await rows(migratedUrl, 'SELECT id::text FROM users'), [[id]])
})
