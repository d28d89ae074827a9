// The migrations, which are written by hand, make what schema.prisma says.
import assert from 'node:assert/strict'
import { onTestFinished, test } from 'vitest'
import { connectForScripts } from '../../src/connection.ts'
import type {
  AuditEvent,
  Block,
  DeletedAddress,
  MailToken,
  Prisma,
  Session,
  UsedTicket,
  User,
} from '../../src/generated/client.ts'
import { openDatabases, opened, rows } from '../databases.ts'

const { migratedUrl } = await openDatabases()

const id = '00000000-0000-4000-8000-000000000000'
const at = new Date('2026-01-02T03:04:05.678Z')
const bytes = new Uint8Array([0, 127, 255])

test('every column of every model is written and read as what schema.prisma says', async (t) => {
  const database = opened(t, migratedUrl)
  const user: User = {
    id,
    email: 'b@example.test',
    passwordHash: 'x',
    credentialVersion: 2,
    createdAt: at,
    updatedAt: at,
    emailConfirmedAt: at,
    disabledAt: at,
    linksVoidBefore: at,
    passwordChangedAt: at,
  }
  const session: Session = {
    id,
    userId: id,
    createdAt: at,
    expiresAt: at,
    idleEndsAt: at,
    revokedAt: at,
    device: 'x',
    address: 'x',
    familyHash: bytes,
    tokenHash: bytes,
    previousHash: bytes,
    replacedAt: at,
    salt: bytes,
    replacedFrom: 'x',
    askedAgainAt: at,
  }
  const auditEvent: AuditEvent = {
    id,
    at,
    event: 'x',
    outcome: 'x',
    count: 2,
    userId: id,
    sessionId: id,
    address: 'x',
    requestId: 'x',
    isKnown: true,
    failures: 2,
    operator: 'x',
    reason: 'x',
  }
  const block: Block = { network: '192.0.2.0/24', until: at, createdAt: at, operator: 'x', reason: 'x' }
  const usedTicket: UsedTicket = { jobId: id, mark: id }
  const deletedAddress: DeletedAddress = { digest: bytes, keyId: 'x' }
  const mailToken: MailToken = {
    id,
    tokenHash: bytes,
    purpose: 'x',
    userId: id,
    email: 'x',
    credentialVersion: 2,
    createdAt: at,
    expiresAt: at,
    usedAt: at,
  }
  const written = {
    User: [user, await database.user.create({ data: user })],
    Session: [session, await database.session.create({ data: session })],
    AuditEvent: [auditEvent, await database.auditEvent.create({ data: auditEvent })],
    Block: [block, await database.block.create({ data: block })],
    UsedTicket: [usedTicket, await database.usedTicket.create({ data: usedTicket })],
    DeletedAddress: [deletedAddress, await database.deletedAddress.create({ data: deletedAddress })],
    MailToken: [mailToken, await database.mailToken.create({ data: mailToken })],
  } satisfies Record<Prisma.ModelName, unknown[]>
  for (const [model, [asked, stored]] of Object.entries(written)) assert.deepEqual(stored, asked, model)
  await rows(migratedUrl, 'DELETE FROM users')
})

test.each(['infinity', '-infinity', '0044-03-15 BC', '10000-01-01Z'])(
  'no table that is shown takes the time %s',
  async (time) => {
    const pool = await connectForScripts(migratedUrl)
    onTestFinished(() => pool.end())
    const { rows: columns } = await pool.query<{ table: string; column: string }>(`
    SELECT table_name AS table, column_name AS column FROM information_schema.columns
    WHERE table_name IN ('users', 'sessions', 'audit_events', 'mail_tokens') AND data_type LIKE 'timestamp%'`)
    assert.ok(columns.length >= 14, JSON.stringify(columns))
    // NULL violates other columns first, unless the time itself is refused.
    for (const { table, column } of columns)
      await assert.rejects(
        pool.query(`INSERT INTO ${table} (${column}) VALUES ($1)`, [time]),
        /"years_1_to_9999"/,
        column,
      )
  },
)
