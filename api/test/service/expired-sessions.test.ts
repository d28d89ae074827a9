// Which sessions are deleted, with what, and that it does no harm where several do it or the database is away.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { until } from '@spillway/local/rig'
import { connectDatabase } from '@spillway/prisma'
import { afterAll, test } from 'vitest'
import { startDeletingExpiredSessions } from '../../src/sessions/expired-sessions.ts'
import { openSystem } from '../system.ts'

const system = await openSystem()
afterAll(async () => {
  await database.$disconnect()
  await system.close()
})
const database = connectDatabase({ url: system.namespace.databaseUrl, poolSize: 2, statementTimeoutMs: 60_000 })

test('sessions that expired long ago go with their tokens, by several at once, and all others stay', async () => {
  const userId = await newUser()
  const kept: string[] = []
  // A session that expired within the last day still refuses the ticket that opened it.
  for (const expiresIn of ['1 hour', '-1 hour', '-23 hours']) kept.push(...(await newSessions(userId, 1, expiresIn)))
  kept.sort()
  await newSessions(userId, 350, '-25 hours')

  const log = { warn: (details: unknown) => assert.fail(JSON.stringify(details)) }
  const deleting = [1, 2].map(() => startDeletingExpiredSessions({ database, log, periodMs: 100 }))
  await until(async () => (await database.session.count()) === kept.length)
  await Promise.all(deleting.map((each) => each.close()))
  const left = await database.session.findMany({ select: { id: true }, orderBy: { id: 'asc' } })
  assert.deepEqual(
    left.map(({ id }) => id),
    kept,
  )
  assert.equal(await database.refreshToken.count(), 2 * kept.length)
})

test('tokens of mails go a day after their expiry, and no earlier', async () => {
  const userId = await newUser()
  await database.$executeRaw`
    INSERT INTO mail_tokens (id, token_hash, purpose, user_id, email, credential_version, expires_at)
    SELECT gen_random_uuid(), sha256(hours::text::bytea), 'reset', ${userId}::uuid, 'a@example.test', 1, now() + hours * interval '1 hour'
    FROM unnest(ARRAY[1, -1, -23, -25, -26]) AS hours`
  const deleting = startDeletingExpiredSessions({ database, log: { warn: assert.fail }, periodMs: 100 })
  await until(async () => (await database.mailToken.count({ where: { userId } })) === 3)
  await deleting.close()
})

test('marks of used tickets go two hours after their use, and no earlier', async () => {
  await database.$executeRaw`
    INSERT INTO used_tickets (job_id, used_at)
    SELECT gen_random_uuid(), now() - minutes * interval '1 minute' FROM unnest(ARRAY[0, 61, 119, 121, 180]) AS minutes`
  const deleting = startDeletingExpiredSessions({ database, log: { warn: assert.fail }, periodMs: 100 })
  await until(async () => (await database.usedTicket.count()) === 3)
  await deleting.close()
})

test('a session with more tokens than a statement has time to delete goes all the same, and so do those that expired after it', async (t) => {
  const userId = await newUser()
  await newSessions(userId, 1, '-26 hours', 200_000)
  await newSessions(userId, 10, '-25 hours')
  await database.$executeRaw`ANALYZE`
  const { databaseUrl } = system.namespace
  const hasty = [1, 2].map(() => connectDatabase({ url: databaseUrl, poolSize: 1, statementTimeoutMs: 150 }))

  // On a busy machine a batch may be cut off as well, and is then tried again.
  const log = { warn: () => {} }
  const deleting = hasty.map((each) => startDeletingExpiredSessions({ database: each, log, periodMs: 10 }))
  t.onTestFinished(async () => {
    await Promise.all(deleting.map((each) => each.close()))
    await Promise.all(hasty.map((each) => each.$disconnect()))
  })
  await until(async () => (await database.session.count({ where: { userId } })) === 0, { timeoutMs: 180_000 })
})

test('a failed deletion is a warning in the log, and tried again', async (t) => {
  const away = connectDatabase({ url: 'postgresql://x:y@127.0.0.1:1/z', poolSize: 1 })
  t.onTestFinished(() => away.$disconnect())
  const warnings: unknown[] = []
  const log = { warn: (_details: unknown, message?: string) => void warnings.push(message) }
  const deleting = startDeletingExpiredSessions({ database: away, log, periodMs: 10 })
  await until(() => warnings.length >= 2)
  await deleting.close()
  assert.equal(warnings[0], 'expired sessions could not be deleted')
})

async function newUser(): Promise<string> {
  const id = randomUUID()
  await database.user.create({ data: { id, email: `${id}@example.test`, passwordHash: 'x' } })
  return id
}

/** Sessions that expire so long from now, each with so many tokens; their ids. */
async function newSessions(userId: string, count: number, expiresIn: string, tokens = 2): Promise<string[]> {
  const sessions = await database.$queryRaw<{ id: string }[]>`
    WITH session AS (
      INSERT INTO sessions (id, user_id, expires_at)
      SELECT gen_random_uuid(), ${userId}::uuid, now() + ${expiresIn}::interval FROM generate_series(1, ${count}::int)
      RETURNING id, expires_at
    ), token AS (
      INSERT INTO refresh_tokens (token_hash, session_id, expires_at)
      SELECT sha256((id || n::text)::bytea), id, expires_at FROM session, generate_series(1, ${tokens}::int) AS n
    )
    SELECT id FROM session`
  return sessions.map(({ id }) => id)
}
