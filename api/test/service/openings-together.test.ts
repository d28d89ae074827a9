// Logins and refreshes that end at the same moment: lookups, sessions and rotations go as one
// statement each, and every one gets its own outcome.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connectDatabase } from '@spillway/prisma'
import { parseKeyring } from '@spillway/queue/client'
import { afterAll, test } from 'vitest'
import { Credentials } from '../../src/passwords/login.ts'
import { newRefreshToken, RefreshTokenTags, Sessions } from '../../src/sessions/sessions.ts'
import { lockOptions, openSystem } from '../system.ts'

const system = await openSystem()
afterAll(() => database.$disconnect())
const patience = { connectionTimeoutMs: 60_000, statementTimeoutMs: 60_000 }
const database = connectDatabase({ url: system.namespace.databaseUrl, poolSize: 4, ...patience })
const keyring = parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? '')
const tags = new RefreshTokenTags(keyring)
const options = { sessionTtlS: 3_600, sessionIdleS: 600, refreshGraceS: 0, needsConfirmedEmail: false }
const sessions = new Sessions(database, keyring, options)
const client = { device: 'a "quoted" {device}, with \\', ip: '192.0.2.1' }

test('each of many openings has its own outcome, whatever the others are', async () => {
  const [one = '', other = '', disabled = ''] = await newUsers(3)
  await database.user.update({ where: { id: disabled }, data: { disabledAt: new Date() } })
  const opening = (userId: string, id = randomUUID(), credentialVersion = 1) =>
    sessions.open({ id, userId, credentialVersion, ...client })
  const known = randomUUID()
  const lost = await opening(one, known)
  assert.ok(typeof lost === 'object')
  const twice = randomUUID()

  const outcomes = await Promise.all([
    opening(one),
    opening(one),
    opening(other),
    opening(one, known),
    opening(other, randomUUID(), 2),
    opening(other, randomUUID(), 0),
    opening(randomUUID()),
    opening(disabled),
    opening(other, twice),
    opening(other, twice),
  ])
  const names = outcomes.map((outcome) => (typeof outcome === 'string' ? outcome : outcome.userId))
  assert.deepEqual(names, [one, one, other, one, 'stale', 'stale', 'stale', 'stale', other, other])
  // The session of a job that opens it again has the new token alone.
  assert.equal(await sessions.refresh({ token: lost.refreshToken, network: '192.0.2.1' }), 'invalid')
  outcomes.splice(8, 2)

  for (const outcome of outcomes) {
    if (typeof outcome === 'string') continue
    const refreshed = await sessions.refresh({ token: outcome.refreshToken, network: '192.0.2.1' })
    assert.ok(typeof refreshed !== 'string' && 'refreshToken' in refreshed && refreshed.sessionId === outcome.sessionId)
    const [session] = (await sessions.list(outcome.userId)).filter(({ id }) => id === outcome.sessionId)
    assert.equal(session?.device, client.device)
  }
})

test('an opening whose user is locked waits for the change of the password; the others do not', async () => {
  const [locked = '', free = ''] = await newUsers(2)
  const opening = (userId: string) => sessions.open({ id: randomUUID(), userId, credentialVersion: 1, ...client })
  let ofLocked: ReturnType<typeof opening> | undefined
  await database.$transaction(async (transaction) => {
    await transaction.user.update({ where: { id: locked }, data: { credentialVersion: 2 } })
    ofLocked = opening(locked)
    assert.equal(typeof (await opening(free)), 'object')
  }, lockOptions)
  assert.equal(await ofLocked, 'stale')
})

test('each of many refreshes has its own outcome: one that waits for a lock, and a dead token among them', async () => {
  const [userId = ''] = await newUsers(1)
  const open = async () => {
    const opened = await sessions.open({ id: randomUUID(), userId, credentialVersion: 1, ...client })
    assert.ok(typeof opened === 'object')
    return opened
  }
  const [plain, other, dead, locked] = [await open(), await open(), await open(), await open()]
  const refresh = async ({ refreshToken: token }: { refreshToken: string }) => {
    const refreshed = await sessions.refresh({ token, network: '192.0.2.1' })
    if (typeof refreshed === 'string') return refreshed
    return 'refreshToken' in refreshed ? refreshed : ('ended' as const)
  }
  assert.equal(typeof (await refresh(dead)), 'object')
  const unknown = { refreshToken: tags.tag(newRefreshToken(randomUUID())) }
  let ofLocked: ReturnType<typeof refresh> | undefined
  await database.$transaction(async (transaction) => {
    await transaction.session.update({ where: { id: locked.sessionId }, data: { device: 'another' } })
    ofLocked = refresh(locked)
    const outcomes = await Promise.all([plain, other, dead, unknown].map(refresh))
    const [first, second, ...refused] = outcomes
    assert.deepEqual(refused, ['ended', 'invalid'])
    for (const [n, outcome] of [first, second].entries()) {
      assert.ok(typeof outcome === 'object' && outcome.sessionId === [plain, other][n]?.sessionId)
      assert.equal(typeof (await refresh(outcome)), 'object')
    }
  }, lockOptions)
  assert.equal(typeof (await ofLocked), 'object')

  const again = await open()
  assert.deepEqual((await Promise.all([again, again].map(refresh))).map((outcome) => typeof outcome).toSorted(), [
    'object',
    'string',
  ])
})

test('each of many lookups finds its own account, or none', async () => {
  const { find } = new Credentials(database, { needsConfirmedEmail: false })
  const [id = ''] = await newUsers(1)
  const { email } = await database.user.findUniqueOrThrow({ where: { id } })
  const found = await Promise.all([find(email), find('nobody@example.test'), find('"},{@example.test'), find(email)])
  const ids = found.map((user) => user?.id)
  assert.deepEqual(ids, [id, undefined, undefined, id])
})

async function newUsers(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID())
  for (const id of ids) await database.user.create({ data: { id, email: `${id}@example.test`, passwordHash: 'none' } })
  return ids
}
