// How many sessions a user may have, and how long the database keeps those that have ended.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { LIVE_MAX } from '../../src/sessions/session-opening.ts'
import {
  assertProblem,
  type Credentials,
  call,
  changePassword,
  expect,
  login,
  logout,
  me,
  newAccount,
  patiently,
  refresh,
} from '../client.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
afterAll(() => system.close())
const { url } = await system.gateway({ REFRESH_GRACE_S: '0' })
const { database } = system

/** Logins that come at once. */
const AT_ONCE = 10

const logIn = async (account: Credentials) => expect(200, await patiently(() => login(url, account)))
const liveOf = (userId: string) => database.session.count({ where: { userId, revokedAt: null } })

test('a user has a thousand sessions: the oldest end as others are opened, and a new password ends all but one', async () => {
  const account = await newAccount(url)
  const [first, stranger] = [await logIn(account), await logIn(await newAccount(url))]
  const { id: userId } = expect(200, await me(url, first.accessToken))
  await addOlderSessions(userId, LIVE_MAX + 500)
  // One login of several looks, by chance; of those that come at once, more than one may.
  await until(
    async () => {
      await Promise.all(Array.from({ length: AT_ONCE }, () => logIn(account)))
      return (await liveOf(userId)) < LIVE_MAX + AT_ONCE
    },
    { what: 'a bounded number of sessions' },
  )
  assert.ok((await liveOf(userId)) >= LIVE_MAX)
  const isTheMost = async () => {
    await logIn(account)
    return (await liveOf(userId)) === LIVE_MAX
  }
  await until(isTheMost, { what: 'a login that looks, and leaves the most that is allowed' })
  const ofUser = { userId, revokedAt: null }
  const oldest = await database.session.findFirstOrThrow({ where: ofUser, orderBy: { createdAt: 'asc' } })
  const outlived = { userId, revokedAt: { not: null }, createdAt: { gt: oldest.createdAt } }
  assert.equal(await database.session.count({ where: outlived }), 0)
  for (const { accessToken } of [first, stranger]) expect(200, await me(url, accessToken))

  const change = { currentPassword: account.password, newPassword: 'another pass phrase entirely' }
  expect(204, await changePassword(url, first.accessToken, change))
  assert.equal(await liveOf(userId), 1)
  expect(200, await me(url, first.accessToken))
})

test('a session that has ended is deleted a day later, not a month, however it ended', async () => {
  const account = await newAccount(url)
  const mine = await logIn(account)
  const { id: userId } = expect(200, await me(url, mine.accessToken))
  const [reused, left, other] = [await logIn(account), await logIn(account), await logIn(account)]
  expect(200, await refresh(url, reused.refreshToken))
  assertProblem(await refresh(url, reused.refreshToken), 401, 'invalid_refresh_token')
  expect(204, await logout(url, left.refreshToken))
  expect(204, await call(url, 'DELETE', '/v1/me/sessions', { token: mine.accessToken }))
  assertProblem(await me(url, other.accessToken), 401, 'invalid_token')
  const ended = await database.session.findMany({ where: { userId, revokedAt: { not: null } } })
  assert.equal(ended.length, 3)
  for (const { expiresAt } of ended) assert.ok(expiresAt.getTime() <= Date.now() + 1_000)
})

/** So many live sessions, a second apart, the last of them an hour old. */
const addOlderSessions = (userId: string, count: number) => database.$executeRaw`
  INSERT INTO sessions (id, user_id, created_at, expires_at, idle_ends_at, family_hash, token_hash)
  SELECT gen_random_uuid(), ${userId}::uuid, now() - interval '1 hour' - n * interval '1 second', now() + interval '1 day',
    now() + interval '1 day', '', ''
  FROM generate_series(1, ${count}::int) AS n`
