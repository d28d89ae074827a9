// Refresh tokens at two gateways: what each is good for, two at once, the end of the session.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { withResolvers } from '@spillway/common/within'
import { test } from 'vitest'
import { assertProblem, atOnce, type Body, type Client, expect } from '../client.ts'
import { lockOptions, shareSystem } from '../system.ts'

const system = await shareSystem()
const env = { TRUST_PROXY: '127.0.0.1', REFRESH_GRACE_S: '40' }
const [{ api: here }, { api: there }] = await Promise.all([system.gateway(env), system.gateway(env)])
const account = await here.newAccount()
const newSession = async () => expect(200, await here.login(account))

/** Shows a token many times at once, to both gateways by turns. */
const manyAtOnce = (token: string, apis = [here, there]) => atOnce(30, (n) => (apis[n % 2] ?? here).refresh(token))

/** As a client in another network than all other requests here. */
const refreshElsewhere = (api: Client, refreshToken: string) =>
  api.call('POST', '/v1/token/refresh', { body: { refreshToken }, headers: { 'x-forwarded-for': '203.0.113.7' } })

/** As if so much time had gone by since this session's token was replaced. */
const laterBy = (interval: string, { accessToken }: Body) => system.database.$executeRaw`
  UPDATE sessions SET replaced_at = replaced_at - ${interval}::interval, asked_again_at = asked_again_at - ${interval}::interval
  WHERE id = ${sessionOf(accessToken)}::uuid`

test('many refreshes of one token at once all get the same successor, and the session goes on, round after round', async () => {
  // A busy machine may take longer for a round than the usual grace.
  const patient = await Promise.all([1, 2].map(() => system.gateway({ ...env, REFRESH_GRACE_S: '300' })))
  const apis = patient.map(({ api }) => api)
  const first = await newSession()
  let { refreshToken } = first
  for (let round = 0; round < 3; round += 1) {
    const given = new Set((await manyAtOnce(refreshToken, apis)).map((answer) => expect(200, answer).refreshToken))
    assert.equal(given.size, 1)
    assert.ok(!given.has(refreshToken))
    refreshToken = [...given].join()
  }
  expect(200, await there.me(first.accessToken))
})

test('a token that is shown again within its grace ends nothing, and after it, elsewhere, the session for everyone', async () => {
  const [session, other] = [await newSession(), await newSession()]
  const next = expect(200, await there.refresh(session.refreshToken))
  await laterBy('20 seconds', session)
  assert.equal(expect(200, await here.refresh(session.refreshToken)).refreshToken, next.refreshToken)
  assert.equal(expect(200, await refreshElsewhere(here, session.refreshToken)).refreshToken, next.refreshToken)
  await laterBy('20 seconds', session)

  assertProblem(await refreshElsewhere(here, session.refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await there.refresh(next.refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await there.me(next.accessToken), 401, 'invalid_token')
  expect(200, await there.refresh(other.refreshToken))
})

test('the grace is not prolonged by using it', async () => {
  const session = await newSession()
  expect(200, await here.refresh(session.refreshToken))
  for (let n = 0; n < 3; n += 1) {
    await laterBy('8 seconds', session)
    expect(200, await there.refresh(session.refreshToken))
  }
  await laterBy('16 seconds', session)
  assertProblem(await refreshElsewhere(there, session.refreshToken), 401, 'invalid_refresh_token')
})

test('a client whose answer was lost comes back after the grace, from its network, as often as answers are lost', async () => {
  const session = await newSession()
  const lost = expect(200, await here.refresh(session.refreshToken))
  for (let n = 0; n < 3; n += 1) {
    await laterBy('1 minute', session)
    const again = expect(200, await (n % 2 ? here : there).refresh(session.refreshToken))
    assert.equal(again.refreshToken, lost.refreshToken)
  }
  const next = expect(200, await there.refresh(lost.refreshToken))
  expect(200, await here.refresh(next.refreshToken))
})

test('a successor that was used is given to nobody again', async () => {
  const session = await newSession()
  const next = expect(200, await here.refresh(session.refreshToken))
  expect(200, await here.refresh(next.refreshToken))
  assertProblem(await here.refresh(session.refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await there.me(next.accessToken), 401, 'invalid_token')
})

test('a thief with a replaced token in the network of its owner has the session with them until one refreshes after the other', async () => {
  const session = await newSession()
  const owners = expect(200, await here.refresh(session.refreshToken))
  await laterBy('1 minute', session)
  const thiefs = expect(200, await there.refresh(session.refreshToken))
  assert.equal(thiefs.refreshToken, owners.refreshToken)
  expect(200, await here.refresh(owners.refreshToken))
  await laterBy('1 minute', session)
  // The second time within six hours that someone comes back after a grace.
  assertProblem(await there.refresh(thiefs.refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await here.me(owners.accessToken), 401, 'invalid_token')
})

test('another answer may be lost after six hours, and not before', async () => {
  for (const [interval, status] of [
    ['7 hours', 200],
    ['5 hours', 401],
  ] as const) {
    const session = await newSession()
    const next = expect(200, await here.refresh(session.refreshToken))
    await laterBy('1 minute', session)
    expect(200, await here.refresh(session.refreshToken))
    const last = expect(200, await here.refresh(next.refreshToken))
    await laterBy('1 minute', session)
    await system.database.$executeRaw`
      UPDATE sessions SET asked_again_at = asked_again_at - ${interval}::interval WHERE id = ${sessionOf(session.accessToken)}::uuid`
    const answer = await there.refresh(next.refreshToken)
    assert.equal(answer.status, status, interval)
    if (status === 200) assert.equal(answer.body.refreshToken, last.refreshToken)
  }
})

test('a token older than the last replaced one has no grace, however quickly it is shown', async () => {
  const first = await newSession()
  const second = expect(200, await here.refresh(first.refreshToken))
  const third = expect(200, await there.refresh(second.refreshToken))
  assertProblem(await here.refresh(first.refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await here.refresh(third.refreshToken), 401, 'invalid_refresh_token')
})

test('without a grace, of many refreshes of one token at once one succeeds, and the session ends', async () => {
  const without = await Promise.all([1, 2].map(() => system.gateway({ REFRESH_GRACE_S: '0' })))
  const { refreshToken, accessToken } = await newSession()
  const answers = await manyAtOnce(
    refreshToken,
    without.map(({ api }) => api),
  )
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assertProblem(await here.me(accessToken), 401, 'invalid_token')
})

test('a logout with a dead token ends the session as well', async () => {
  const session = await newSession()
  const next = expect(200, await here.refresh(session.refreshToken))
  expect(204, await there.logout(session.refreshToken))
  assertProblem(await here.refresh(next.refreshToken), 401, 'invalid_refresh_token')
})

test('a made-up token, however it is made, is refused and logged out without a query', async () => {
  const { refreshToken } = await newSession()
  const [session, family, secret, tag] = refreshToken.split('.')
  const bytes = (length: number) => randomBytes(length).toString('base64url')
  const made = [
    [bytes(16), bytes(16), bytes(32), bytes(16)],
    [session, family, bytes(32), tag],
    [session, family, secret, bytes(16)],
    [session, family, secret],
  ].map((parts) => parts.join('.'))
  const untilUnlocked = withResolvers<void>()
  const locked = withResolvers<void>()
  // Whoever asks for a refresh token now waits until the statement timeout.
  const lock = system.database.$transaction(async (transaction) => {
    await transaction.$executeRaw`LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE`
    locked.resolve()
    await untilUnlocked.promise
  }, lockOptions)
  await locked.promise
  try {
    for (const token of made) {
      assertProblem(await here.refresh(token), 401, 'invalid_refresh_token')
      expect(204, await there.logout(token))
    }
  } finally {
    untilUnlocked.resolve()
    await lock
  }
  expect(200, await here.refresh(refreshToken))
})

/** The id of the session that an access token is of. */
function sessionOf(accessToken: string): string {
  const [, payload = ''] = accessToken.split('.')
  return String(JSON.parse(Buffer.from(payload, 'base64url').toString()).sid)
}
