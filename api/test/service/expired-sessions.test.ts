// Which sessions are deleted, with what; several may do it, also while the database is away.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { connectDatabase } from '@spillway/prisma'
import { newId } from '@spillway/queue/wire/id'
import { afterAll, test } from 'vitest'
import { startDeletingExpiredSessions } from '../../src/sessions/expired-sessions.ts'
import { openSystem } from '../system.ts'

const system = await openSystem()
afterAll(() => database.$disconnect())
const patience = { connectionTimeoutMs: 60_000, statementTimeoutMs: 60_000 }
const database = connectDatabase({ url: system.namespace.databaseUrl, poolSize: 2, ...patience })

test('sessions that expired long ago go, by several at once, and all others stay', async () => {
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
  const ids = left.map(({ id }) => id)
  assert.deepEqual(ids, kept)
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

test('marks of used tickets go three hours after their jobs were added, and no earlier', async () => {
  const minutesAgo = (minutes: number) => newId(Date.now() - minutes * 60_000)
  await database.$executeRaw`
    INSERT INTO used_tickets (mark, job_id) SELECT gen_random_uuid(), unnest(${[0, 61, 179, 181, 300].map(minutesAgo)}::uuid[])`
  const deleting = startDeletingExpiredSessions({ database, log: { warn: assert.fail }, periodMs: 100 })
  await until(async () => (await database.usedTicket.count()) === 3)
  await deleting.close()
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

/** Sessions that expire so long from now; their ids. */
async function newSessions(userId: string, count: number, expiresIn: string): Promise<string[]> {
  const sessions = await database.$queryRaw<{ id: string }[]>`
    INSERT INTO sessions (id, user_id, expires_at, idle_ends_at, family_hash, token_hash)
    SELECT gen_random_uuid(), ${userId}::uuid, now() + ${expiresIn}::interval, now(), '', '' FROM generate_series(1, ${count}::int)
    RETURNING id`
  return sessions.map(({ id }) => id)
}
