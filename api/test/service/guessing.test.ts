// Guessing is held back and locks nobody out: known devices, and the failures of all others.
import assert from 'node:assert/strict'
import { readMetric } from '@spillway/infra/harness/api-client'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { delayStrangers, nameInRedis } from '../account.ts'
import {
  type Answer,
  asIs,
  assertProblem,
  atOnce,
  type Credentials,
  expect,
  NEXT,
  newCredentials,
  respondAsync,
} from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { shareSystem } from '../system.ts'

const mails = await startMailServer()
const system = await shareSystem()
const { redis, namespace } = system
/** Two failures of unknown devices are not delayed. */
const UNDELAYED = 2
const held = { GUESSES_PER_ACCOUNT: String(UNDELAYED), TRUST_PROXY: '127.0.0.1' }
const [{ api: here, opsUrl }, { api: there }] = await Promise.all([
  system.gateway({ ...held, ...mails.env }),
  system.gateway(held),
])

const known = (token: string) => ({ headers: { 'spillway-device': token } })
const guess = (n: number, { email }: Credentials, options?: object) =>
  (n % 2 ? here : there).login({ email, password: `guess ${n}` }, options)
const keyOf = (kind: string, { email }: Credentials) => `${namespace.queuePrefix}:${kind}:${nameInRedis(system, email)}`
const failuresOf = async (account: Credentials) => Number(await redis.hget(keyOf('guesses', account), 'failures'))
const delay = ({ email }: Credentials) => delayStrangers(system, email)

/** Fails so often, at both gateways in turn, each time once the delay is over; returns the refusals. */
async function fail(times: number, credentials: Credentials): Promise<Answer[]> {
  const refusals: Answer[] = []
  const before = await failuresOf(credentials)
  for (let n = 0; n < times; ) {
    const tried = await guess(n, credentials)
    if (tried.status === 429) {
      assertProblem(tried, 429, 'too_many_requests')
      refusals.push(tried)
      await redis.hset(keyOf('guesses', credentials), 'failedAt', 0)
      continue
    }
    assertProblem(tried, 401, 'invalid_credentials')
    n += 1
    await until(async () => (await failuresOf(credentials)) === before + n, { what: 'the failure counted' })
  }
  return refusals
}

test('a device that has logged in to the account gets in while strangers guess, and they do not', async () => {
  const { account: owner, deviceToken } = await here.signedIn()
  await delay(owner)
  for (const api of [here, there]) assertProblem(await api.login(owner), 429, 'too_many_requests')
  for (const api of [here, there]) expect(200, await api.login(owner, known(deviceToken)))
  // Whose device it is says nothing about the others.
  assertProblem(await here.login(owner), 429, 'too_many_requests')
})

test('strangers wait longer and longer, up to an hour', async () => {
  const owner = await here.newAccount()
  const refusals = await fail(UNDELAYED + 14, owner)
  const waitsS = refusals.map(({ headers }) => Number(headers.get('retry-after')))
  // On a slow machine the first delays may be over by the next attempt.
  for (const n of [8, 9, 10, 11])
    assert.ok(
      waitsS.some((waitS) => waitS <= 2 ** n && waitS > 2 ** n - 60),
      `${waitsS}`,
    )
  assert.ok(Math.max(...waitsS) <= 3_600 && Math.max(...waitsS) > 3_540)
  assertProblem(await here.login(owner), 429, 'too_many_requests')
})

test('a right password of an unknown device gets in when the delay is over, and what failed before is forgotten', async () => {
  const owner = await here.newAccount()
  await fail(UNDELAYED + 1, owner)
  await redis.hset(keyOf('guesses', owner), 'failedAt', 0)
  expect(200, await there.login(owner))
  await until(async () => (await failuresOf(owner)) === 0, { what: 'the failures forgotten' })
  for (let n = 0; n < UNDELAYED; n += 1) assertProblem(await guess(n, owner), 401, 'invalid_credentials')
})

test('a password that is reset by mail makes its device known, however often strangers fail', async () => {
  const { account: owner, deviceToken: before } = await here.signedIn()
  await delay(owner)
  expect(204, await here.forgotten(owner.email))
  const { deviceToken } = expect(200, await here.resetPassword((await mails.next(owner.email, /\/reset#/)).token))
  const renewed = { ...owner, password: NEXT }
  await delay(owner)
  assertProblem(await there.login(renewed), 429, 'too_many_requests')
  assertProblem(await there.login(renewed, known(before)), 429, 'too_many_requests')
  expect(200, await there.login(renewed, known(deviceToken)))
})

test('a device fails ten times by itself, then it is a stranger; its failures count for no other', async () => {
  const owner = await here.newAccount()
  const [phone, laptop] = [expect(200, await here.login(owner)), expect(200, await here.login(owner))]
  for (let n = 0; n < 10; n += 1)
    assertProblem(await guess(n, owner, known(phone.deviceToken)), 401, 'invalid_credentials')
  await delay(owner)
  assertProblem(await here.login(owner, known(phone.deviceToken)), 429, 'too_many_requests')
  const { deviceToken } = expect(200, await there.login(owner, known(laptop.deviceToken)))
  for (let n = 0; n < 9; n += 1) assertProblem(await guess(n, owner, known(deviceToken)), 401, 'invalid_credentials')
  expect(200, await there.login(owner, known(deviceToken)))
  for (let n = 0; n < 9; n += 1) assertProblem(await guess(n, owner, known(deviceToken)), 401, 'invalid_credentials')
})

test('of a hundred guesses at once no more get in than of a hundred in turn, at two gateways together', async () => {
  for (const credentials of [await here.newAccount(), newCredentials()]) {
    const beganMs = performance.now()
    const answers = await atOnce(100, (n) => guess(n, credentials, asIs))
    const answered = (status: number) => answers.filter((answer) => answer.status === status).length
    // Who got in may have a ticket. Where the machine is too slow for Redis, nobody was let in or refused.
    const [letIn, undecided] = [answered(401) + answered(202), answered(503)]
    // Two without delay; on a slow machine a delay of 1, 2, 4… seconds may be over by then.
    const inTurn = 2 + Math.floor(Math.log2(1 + (performance.now() - beganMs) / 1_000))
    assert.ok(letIn + undecided >= 2 && letIn <= inTurn, `${letIn} got in, in turn it were ${inTurn}`)
    for (const refused of answers.filter(({ status }) => ![401, 202, 503].includes(status)))
      assertProblem(refused, 429, 'too_many_requests')
  }
})

test('the limit of a minute counts a known device by itself', async () => {
  const { api } = await system.gateway({ ...held, GUESSES_PER_ACCOUNT: '10', LIMIT_PER_ACCOUNT: '3' })
  const { account: owner, deviceToken } = await here.signedIn()
  for (let n = 0; n < 4; n += 1) await api.login({ ...owner, password: 'a guess' })
  const refused = await api.login(owner)
  assertProblem(refused, 429, 'too_many_requests')
  assert.equal(refused.headers.get('ratelimit-limit'), '3')
  for (let n = 0; n < 3; n += 1) {
    expect(200, await api.login(owner, known(deviceToken)))
  }
  const own = await api.login(owner, known(deviceToken))
  assertProblem(own, 429, 'too_many_requests')
})

test('a login that cost no hash counts for nothing', async () => {
  const { api } = await system.gateway({ ...held, DATABASE_URL: 'postgresql://127.0.0.1:1/none' })
  const credentials = newCredentials()
  assertProblem(await api.login(credentials, asIs), 503, 'unavailable')
  const counts = [keyOf('guesses', credentials), keyOf('guesses:pending', credentials)]
  await until(async () => (await redis.exists(...counts)) === 0, { what: 'the attempt taken back' })
})

test('a login that is answered by a ticket is counted, and gives the device its token at any gateway', async () => {
  const owner = await here.newAccount()
  const { ticket } = expect(202, await here.login(owner, respondAsync))
  const { deviceToken } = expect(200, await there.redeem(ticket))
  const [first, second] = [
    expect(202, await guess(0, owner, respondAsync)),
    expect(202, await guess(1, owner, respondAsync)),
  ]
  assert.equal(await redis.zcard(keyOf('guesses:pending', owner)), 2)
  expect(200, await here.login(owner, known(deviceToken)))
  for (const guessed of [first, second]) assertProblem(await there.redeem(guessed.ticket), 401, 'invalid_credentials')
  await until(async () => (await failuresOf(owner)) === 2, { what: 'the failures counted' })
})

test('where sessions are cookies, the token is one as well', async () => {
  const { api } = await system.gateway({ ...held, ...mails.env, SESSION_COOKIE: 'true' })
  const owner = await api.newAccount()
  const deviceOf = ({ headers }: Answer) =>
    headers.getSetCookie().find((text) => text.startsWith('__Host-spillway-device='))
  const cookie = deviceOf(await api.login(owner)) ?? ''
  assert.match(cookie, /^[\w-]+=[\w.-]+; Max-Age=7776000; Path=\/; Secure; HttpOnly; SameSite=Strict$/)
  assert.equal((await here.login(owner)).headers.get('set-cookie'), null)
  await delay(owner)
  const [pair = ''] = cookie.split(';')
  expect(200, await api.login(owner, { headers: { cookie: `theme=dark; ${pair}; other=1` } }))
  const { ticket } = expect(202, await api.login(owner, { headers: { cookie: pair, prefer: 'respond-async' } }))
  assert.notEqual(deviceOf(await api.redeem(ticket)), undefined)
  await api.forgotten(owner.email)
  const reset = await api.resetPassword((await mails.next(owner.email, /\/reset#/)).token)
  assert.notEqual(deviceOf(reset), undefined)
  assert.deepEqual(expect(200, reset), {})
})

test('each login is counted once, by what its device is: a token of an earlier password is of an unknown one', async () => {
  const owner = await here.newAccount()
  const counts = async () => {
    const of = (device: string) => readMetric(opsUrl, 'spillway_login_attempts_total', `device="${device}"`)
    return [await of('known'), await of('unknown')] as const
  }
  const { accessToken, deviceToken } = expect(200, await here.login(owner))
  const [known1, unknown1] = await counts()
  expect(200, await here.login(owner, known(deviceToken)))
  assert.deepEqual(await counts(), [known1 + 1, unknown1])
  const renewed = { ...owner, password: 'another long passphrase' }
  expect(204, await here.changePassword(accessToken, owner.password, renewed.password))
  expect(200, await here.login(renewed, known(deviceToken)))
  assert.deepEqual(await counts(), [known1 + 1, unknown1 + 1])
})
