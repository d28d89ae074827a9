// Sessions: their owner sees and ends them, they end unused, and a user has a bounded number.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { LIVE_MAX } from '../../src/sessions/sessions.ts'
import { assertProblem, atOnce, type Body, type Call, type Credentials, expect, respondAsync } from '../client.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const { api } = await system.gateway()

interface Listed {
  id: string
  current: boolean
  device: string | null
  address: string | null
  createdAt: string
  lastUsedAt: string
  expiresAt: string
}

const on = (device: string): Call => ({ headers: { 'user-agent': device } })
const logIn = async (account: Credentials, options?: Call) => expect(200, await api.login(account, options))
const sessionsOf = ({ accessToken }: Body) => api.call('GET', '/v1/me/sessions', { token: accessToken })
const end = ({ accessToken }: Body, id: string) => api.call('DELETE', `/v1/me/sessions/${id}`, { token: accessToken })
const endOthers = ({ accessToken }: Body) => api.call('DELETE', '/v1/me/sessions', { token: accessToken })

async function list(session: Body): Promise<Listed[]> {
  const { sessions }: Body & { sessions?: Listed[] } = expect(200, await sessionsOf(session))
  return sessions ?? assert.fail('no sessions')
}

const idOf = async (session: Body) => (await list(session)).find(({ current }) => current)?.id ?? assert.fail()

async function assertEnded({ accessToken, refreshToken }: Body): Promise<void> {
  assertProblem(await api.me(accessToken), 401, 'invalid_token')
  assertProblem(await api.refresh(refreshToken), 401, 'invalid_refresh_token')
}

test('sessions are listed with device, address and last use, the newest first', async () => {
  const account = await api.newAccount()
  const phone = await logIn(account, on('A phone'))
  const laptop = await logIn(account, on('A laptop'))
  const before = await list(phone)
  assert.deepEqual(
    before.map(({ device, address, current }) => ({ device, address, current })),
    [
      { device: 'A laptop', address: '127.0.0.1', current: false },
      { device: 'A phone', address: '127.0.0.1', current: true },
    ],
  )
  expect(200, await api.refresh(laptop.refreshToken))
  const [used, unused] = await list(phone)
  assert.ok(used && unused && used.lastUsedAt > used.createdAt)
  assert.equal(unused.lastUsedAt, unused.createdAt)
  assert.ok(Date.parse(used.expiresAt) > Date.parse(before[0]?.expiresAt ?? ''))
})

test('what a client calls itself is kept as printable text, and cut', async () => {
  const session = await logIn(await api.newAccount(), on(`\u00e9\tx ${'y'.repeat(300)}`))
  assert.equal((await list(session))[0]?.device, `x ${'y'.repeat(254)}`)
})

test('a session that was opened by a ticket is of the client that redeemed it', async () => {
  const account = await api.newAccount()
  const headers = { ...respondAsync.headers, 'user-agent': 'The client that asked' }
  const { ticket } = expect(202, await api.login(account, { headers }))
  const session = expect(200, await api.redeem(ticket, on('The client that redeemed')))
  assert.equal((await list(session))[0]?.device, 'The client that redeemed')
})

test('a session that is ended refreshes no more, and its access token is refused', async () => {
  const account = await api.newAccount()
  const [mine, thief] = [await logIn(account), await logIn(account)]
  expect(204, await end(mine, await idOf(thief)))
  await assertEnded(thief)
  expect(200, await api.me(mine.accessToken))
  assertProblem(await sessionsOf(thief), 401, 'invalid_token')
  assertProblem(await endOthers(thief), 401, 'invalid_token')
  const own = await idOf(mine)
  assertProblem(await end(thief, own), 401, 'invalid_token')
  expect(204, await end(mine, own))
  await assertEnded(mine)
})

test("nobody ends another account's sessions, nor one that never was", async () => {
  const [mine, other] = [await logIn(await api.newAccount()), await logIn(await api.newAccount())]
  const id = await idOf(other)
  assertProblem(await end(mine, id), 404, 'session_not_found')
  assertProblem(await end(mine, '00000000-0000-0000-0000-000000000000'), 404, 'session_not_found')
  assertProblem(await end(mine, 'no-id'), 422, 'invalid_request')
  assertProblem(await end(mine, `${id}'%00`), 400, 'malformed_request')
  expect(204, await endOthers(mine))
  expect(200, await api.me(other.accessToken))
})

/** As if so much time had gone by since the living tokens of an account were made. */
const laterBy = ({ email }: Credentials, interval: string) => system.database.$executeRaw`
  UPDATE sessions SET idle_ends_at = idle_ends_at - ${interval}::interval FROM users WHERE users.id = user_id AND email = ${email}`

test('a session that nobody uses for two weeks ends, and one that is refreshed goes on', async () => {
  const account = await api.newAccount()
  const [used, unused] = [await logIn(account, on('used')), await logIn(account, on('unused'))]
  await laterBy(account, '13 days')
  const next = expect(200, await api.refresh(used.refreshToken))
  await laterBy(account, '2 days')
  assertProblem(await api.refresh(unused.refreshToken), 401, 'invalid_refresh_token')
  const last = expect(200, await api.refresh(next.refreshToken))
  const devices = (await list(last)).map(({ device }) => device)
  assert.deepEqual(devices, ['used'])
})

test('an access token may not outlive its session', async () => {
  await assert.rejects(system.gateway({ SESSION_IDLE_S: '899' }), /SESSION_IDLE_S must not be below ACCESS_TOKEN_TTL_S/)
})

test('an address in the body of a signed-in request neither fails it nor escapes the limit of its account', async () => {
  const limited = await system.gateway({ LIMIT_PER_ACCOUNT: '5' })
  const { accessToken: token } = await logIn(await api.newAccount())
  const emails = [{ toString: 1 }, ...Array.from({ length: 9 }, (_, n) => `someone-${n}@example.test`)]
  const answers = emails.map((email) => limited.api.call('DELETE', '/v1/me/sessions', { token, body: { email } }))
  const statuses = (await Promise.all(answers)).map(({ status }) => status).sort()
  assert.deepEqual(statuses, [...Array<number>(5).fill(204), ...Array<number>(5).fill(429)])
})

/** A token that was replaced is not excused. */
const { api: strict } = await system.gateway({ REFRESH_GRACE_S: '0' })
/** Logins that come at once. */
const AT_ONCE = 10

const logInStrictly = async (account: Credentials) => expect(200, await strict.login(account))
const liveOf = (userId: string) => system.database.session.count({ where: { userId, revokedAt: null } })

test('a user has a thousand sessions: the oldest end as others are opened, and a new password ends all but one', async () => {
  const account = await strict.newAccount()
  const [first, stranger] = [await logInStrictly(account), await logInStrictly(await strict.newAccount())]
  const { id: userId } = expect(200, await strict.me(first.accessToken))
  await addOlderSessions(userId, LIVE_MAX + 500)
  // One login of several looks, by chance; of those that come at once, more than one may.
  await until(
    async () => {
      await atOnce(AT_ONCE, () => logInStrictly(account))
      return (await liveOf(userId)) < LIVE_MAX + AT_ONCE
    },
    { what: 'a bounded number of sessions' },
  )
  assert.ok((await liveOf(userId)) >= LIVE_MAX)
  const isTheMost = async () => {
    await logInStrictly(account)
    return (await liveOf(userId)) === LIVE_MAX
  }
  await until(isTheMost, { what: 'a login that looks, and leaves the most that is allowed' })
  const ofUser = { userId, revokedAt: null }
  const oldest = await system.database.session.findFirstOrThrow({ where: ofUser, orderBy: { createdAt: 'asc' } })
  const outlived = { userId, revokedAt: { not: null }, createdAt: { gt: oldest.createdAt } }
  assert.equal(await system.database.session.count({ where: outlived }), 0)
  for (const { accessToken } of [first, stranger]) expect(200, await strict.me(accessToken))

  expect(204, await strict.changePassword(first.accessToken, account.password))
  assert.equal(await liveOf(userId), 1)
  expect(200, await strict.me(first.accessToken))
})

test('a session that has ended is deleted a day later, not a month, however it ended', async () => {
  const account = await strict.newAccount()
  const mine = await logInStrictly(account)
  const { id: userId } = expect(200, await strict.me(mine.accessToken))
  const [reused, left, other] = [
    await logInStrictly(account),
    await logInStrictly(account),
    await logInStrictly(account),
  ]
  expect(200, await strict.refresh(reused.refreshToken))
  assertProblem(await strict.refresh(reused.refreshToken), 401, 'invalid_refresh_token')
  expect(204, await strict.logout(left.refreshToken))
  expect(204, await strict.call('DELETE', '/v1/me/sessions', { token: mine.accessToken }))
  assertProblem(await strict.me(other.accessToken), 401, 'invalid_token')
  const ended = await system.database.session.findMany({ where: { userId, revokedAt: { not: null } } })
  assert.equal(ended.length, 3)
  for (const { expiresAt } of ended) assert.ok(expiresAt.getTime() <= Date.now() + 1_000)
})

/** So many live sessions, a second apart, the last of them an hour old. */
const addOlderSessions = (userId: string, count: number) => system.database.$executeRaw`
  INSERT INTO sessions (id, user_id, created_at, expires_at, idle_ends_at, family_hash, token_hash)
  SELECT gen_random_uuid(), ${userId}::uuid, now() - interval '1 hour' - n * interval '1 second', now() + interval '1 day',
    now() + interval '1 day', '', ''
  FROM generate_series(1, ${count}::int) AS n`
