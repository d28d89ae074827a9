// Guessing is held back and locks nobody out: known devices, failures of others, challenges.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { readMetric } from '@spillway/infra/rig/api-client'
import { test } from 'vitest'
import { accountWithHash, nameInRedis } from '../account.ts'
import {
  type Answer,
  assertProblem,
  atOnce,
  type Credentials,
  expect,
  keepTicket,
  newCredentials,
  patiently,
  respondAsync,
} from '../client.ts'
import { solve, solveNot } from '../solve.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
/** A bound and challenges that take no time. Two failures of unknown devices are not delayed. */
const BOUND = 20
const held = { GUESSES_PER_ACCOUNT: String(BOUND), CHALLENGE_BITS: '4', TRUST_PROXY: '127.0.0.1' }
const [{ api: here, opsUrl }, { api: there }] = await Promise.all([system.gateway(held), system.gateway(held)])

const known = (token: string) => ({ headers: { 'spillway-device': token } })
const answering = (answer: string) => ({ headers: { 'spillway-challenge': answer } })
const guess = (n: number, { email }: Credentials, options?: object) =>
  (n % 2 ? here : there).login({ email, password: `guess ${n}` }, options)

/** Fails so often, at both gateways in turn, solving challenges; returns what asked for them */
async function fail(times: number, credentials: Credentials): Promise<Answer[]> {
  const asked: Answer[] = []
  let answer: string | undefined
  for (let n = 0; n < times; ) {
    const tried = await guess(n, credentials, answer === undefined ? {} : answering(answer))
    answer = undefined
    if (tried.status === 429) {
      asked.push(tried)
      answer = solve(tried.body.challenge)
      continue
    }
    assertProblem(tried, 401, 'invalid_credentials')
    n += 1
  }
  return asked
}

test('a device that has logged in to the account gets in while strangers guess, and they do not', async () => {
  const { account: owner, deviceToken } = await here.signedIn()
  await fail(BOUND, owner)
  assertProblem(await guess(0, owner), 429, 'challenge_required')
  assertProblem(await here.login(owner), 429, 'challenge_required')
  for (const api of [here, there]) expect(200, await api.login(owner, known(deviceToken)))
  // Whose device it is says nothing about the others.
  assertProblem(await here.login(owner), 429, 'challenge_required')
})

test('strangers wait longer and longer or solve a challenge; after as many failures as are allowed waiting does not help', async () => {
  const bound = 40
  const { api } = await system.gateway({ GUESSES_PER_ACCOUNT: String(bound), CHALLENGE_BITS: '1' })
  const owner = await api.newAccount()
  const wrong = { ...owner, password: 'a guess' }
  for (let n = 0; n < bound / 10; n += 1) assertProblem(await api.login(wrong), 401, 'invalid_credentials')
  for (let n = 0; n < bound * 0.9; n += 1) {
    const asked = await api.login(wrong)
    assertProblem(asked, 429, 'too_many_requests')
    const [longest, waitS] = [Math.min(3_600, 2 ** n), Number(asked.headers.get('retry-after'))]
    assert.ok(waitS <= longest && waitS > longest / 2 - 1, `${n}: ${waitS} s`)
    assertProblem(await api.login(wrong, answering(solve(asked.body.challenge))), 401, 'invalid_credentials')
  }
  const refused = await api.login(owner)
  assertProblem(refused, 429, 'challenge_required')
  assert.equal(refused.headers.get('retry-after'), null)
})

test('whoever solves the challenge logs in by the right password, and what failed before is forgotten', async () => {
  const owner = await here.newAccount()
  await fail(BOUND + 1, owner)
  const { challenge } = (await here.login(owner)).body
  assert.equal(challenge.kind, 'proof_of_work')
  assert.equal(challenge.expiresIn, 300)
  expect(200, await there.login(owner, answering(solve(challenge))))
  for (let n = 0; n < 2; n += 1) assertProblem(await guess(n, owner), 401, 'invalid_credentials')
})

test('an account that does not exist is answered the same at every step', async () => {
  const steps = async (credentials: Credentials) => {
    const asked = await fail(BOUND + 1, credentials)
    const last = await here.login(credentials)
    return [...asked, last].map(({ status, headers, body: { challenge, ...body } }) => ({
      status,
      body,
      headers: [...headers.keys()].sort(),
      challenge: { ...challenge, token: challenge.token.length },
    }))
  }
  const [unknown, wrong] = await Promise.all([steps(newCredentials()), here.newAccount().then(steps)])
  assert.deepEqual(unknown, wrong)
})

test('an answer to a challenge lets in one of a hundred that show it at once, at whichever gateway', async () => {
  const owner = await here.newAccount()
  await fail(BOUND, owner)
  const answer = answering(solve((await here.login(owner)).body.challenge))
  const answers = await atOnce(100, (n) => guess(n, owner, answer))
  assert.equal(answers.filter(({ status }) => status === 401).length, 1)
  for (const refused of answers.filter(({ status }) => status !== 401))
    assertProblem(refused, 429, 'challenge_required')
})

test('a challenge of another account, changed, unsolved or made up helps nobody', async () => {
  const [owner, other] = await Promise.all([here.newAccount(), there.newAccount()])
  await Promise.all([fail(BOUND, owner), fail(BOUND, other)])
  const mine = (await here.login(owner)).body.challenge
  const [id, expiry, bits, signature] = mine.token.split('.')
  const others = (await here.login(other)).body.challenge
  const easier = { token: [id, expiry, 1, signature].join('.'), bits: 1 }
  const later = { ...mine, token: [id, Number(expiry) + 1_000, bits, signature].join('.') }
  const madeUp = { ...mine, token: [id, expiry, bits, signature?.split('').reverse().join('')].join('.') }
  const useless = [
    solve(others),
    solve(easier),
    solve(later),
    solve(madeUp),
    solveNot(mine),
    mine.token,
    'x',
    '.'.repeat(4_000),
  ]
  for (const answer of useless) assertProblem(await here.login(owner, answering(answer)), 429, 'challenge_required')
  expect(200, await here.login(owner, answering(solve(mine))))
})

test('a device token of another account, changed or made up is as good as none', async () => {
  const [owner, other] = await Promise.all([here.newAccount(), there.newAccount()])
  const mine = expect(200, await here.login(owner)).deviceToken
  const others = expect(200, await here.login(other)).deviceToken
  await fail(BOUND, owner)
  const [device, issuedAt, generation, signature] = mine.split('.')
  const useless = [
    others,
    [others.split('.')[0], issuedAt, generation, signature].join('.'),
    [device, Number(issuedAt) + 1, generation, signature].join('.'),
    [device, issuedAt, others.split('.')[2], signature].join('.'),
    [device, issuedAt, signature].join('.'),
    `${mine}x`,
    mine.toUpperCase(),
    'x'.repeat(8_000),
  ]
  for (const token of useless) assertProblem(await here.login(owner, known(token)), 429, 'challenge_required')
  expect(200, await here.login(owner, known(mine)))
})

test('a device fails ten times by itself, then it is a stranger; its failures count for no other', async () => {
  const owner = await here.newAccount()
  const [phone, laptop] = [expect(200, await here.login(owner)), expect(200, await here.login(owner))]
  for (let n = 0; n < 10; n += 1)
    assertProblem(await guess(n, owner, known(phone.deviceToken)), 401, 'invalid_credentials')
  await fail(BOUND, owner)
  assertProblem(await here.login(owner, known(phone.deviceToken)), 429, 'challenge_required')
  const { deviceToken } = expect(200, await there.login(owner, known(laptop.deviceToken)))
  for (let n = 0; n < 9; n += 1) assertProblem(await guess(n, owner, known(deviceToken)), 401, 'invalid_credentials')
  expect(200, await there.login(owner, known(deviceToken)))
  for (let n = 0; n < 9; n += 1) assertProblem(await guess(n, owner, known(deviceToken)), 401, 'invalid_credentials')
})

test('a change of the password makes the devices of whoever knew the old one strangers', async () => {
  const { account: owner, accessToken, deviceToken } = await here.signedIn()
  const newPassword = 'another pass phrase'
  expect(204, await there.changePassword(accessToken, owner.password, newPassword))
  await fail(BOUND, owner)
  const renewed = { ...owner, password: newPassword }
  const refused = await here.login(renewed, known(deviceToken))
  assertProblem(refused, 429, 'challenge_required')
  const answer = answering(solve(refused.body.challenge))
  const next = expect(200, await there.login(renewed, answer)).deviceToken
  await fail(BOUND, owner)
  expect(200, await here.login(renewed, known(next)))
})

test('of a hundred guesses at once no more get in than of a hundred in turn, at two gateways together', async () => {
  for (const credentials of [await here.newAccount(), newCredentials()]) {
    const beganMs = performance.now()
    const answers = await atOnce(100, (n) => guess(n, credentials))
    const letIn = answers.filter(({ status }) => status === 401).length
    // Two without delay; on a slow machine a delay of 1, 2, 4… seconds may be over by then.
    const inTurn = 2 + Math.floor(Math.log2(1 + (performance.now() - beganMs) / 1_000))
    assert.ok(letIn >= 2 && letIn <= inTurn, `${letIn} got in, in turn it were ${inTurn}`)
    for (const refused of answers.filter(({ status }) => status !== 401))
      assertProblem(refused, 429, 'too_many_requests')
  }
})

test('the limit of a minute counts a known device by itself', async () => {
  const { api } = await system.gateway({ ...held, GUESSES_PER_ACCOUNT: '100', LIMIT_PER_ACCOUNT: '3' })
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
  assert.equal(own.body.challenge, undefined)
  expect(200, await api.login(owner, answering(solve(refused.body.challenge))))
})

test('a login that cost no hash counts for nothing', async () => {
  const broken = await system.gateway({
    ...held,
    GUESSES_PER_ACCOUNT: '1',
    DATABASE_URL: 'postgresql://127.0.0.1:1/none',
  })
  const { api } = await system.gateway({ ...held, GUESSES_PER_ACCOUNT: '1' })
  const credentials = newCredentials()
  assertProblem(await broken.api.login(credentials), 503, 'unavailable')
  await until(async () => (await api.login(credentials)).status === 401, { what: 'the attempt taken back' })
  assertProblem(await api.login(credentials), 429, 'challenge_required')
})

test('a challenge that was solved for a login that cost no hash may be solved again, and ends no delay', async () => {
  const broken = await system.gateway({ ...held, DATABASE_URL: 'postgresql://127.0.0.1:1/none' })
  const owner = newCredentials()
  await fail(6, owner)
  const answer = solve((await guess(0, owner)).body.challenge)
  const used = () => system.redis.keys(`${system.namespace.queuePrefix}:challenge:*`)
  const before = (await used()).length
  assertProblem(await broken.api.login(owner, answering(answer)), 503, 'unavailable')
  await until(async () => (await used()).length === before, { what: 'the attempt taken back' })
  assertProblem(await guess(0, owner), 429, 'too_many_requests')
  assertProblem(await guess(0, owner, answering(answer)), 401, 'invalid_credentials')
})

test('a challenge that was used stays used, also when a login that shows it again needs none and costs no hash', async () => {
  const broken = await system.gateway({ ...held, DATABASE_URL: 'postgresql://127.0.0.1:1/none' })
  const owner = await here.newAccount()
  const counted = `${system.namespace.queuePrefix}:guesses:${nameInRedis(system, owner.email)}`
  await fail(BOUND, owner)
  const used = answering(solve((await here.login(owner)).body.challenge))
  expect(200, await here.login(owner, used))
  await until(async () => (await system.redis.exists(counted)) === 0, { what: 'the failures forgotten' })
  assertProblem(await broken.api.login(owner, used), 503, 'unavailable')
  const pending = counted.replace(':guesses:', ':guesses:pending:')
  await until(async () => (await system.redis.exists(counted, pending)) === 0, { what: 'the attempt taken back' })
  await fail(BOUND, owner)
  assertProblem(await here.login(owner, used), 429, 'challenge_required')
})

test('what is no count, in the place of one, lets nobody guess on, and does not stay', async () => {
  const { redis, namespace } = system
  for (const n of [0, 1, 2]) {
    const { account: owner, deviceToken } = await here.signedIn()
    const account = nameInRedis(system, owner.email)
    const [device = ''] = deviceToken.split('.')
    const forgeries = [
      (key: string) => redis.lpush(key, 'a list'),
      (key: string) => (/:guesses:[^:]+$/.test(key) ? redis.hset(key, 'failures', 'nan') : redis.set(key, 'nan')),
      (key: string) =>
        /:guesses:devices:/.test(key) ? redis.hset(key, device, 'nan') : redis.zadd(key, '1', 'a member'),
    ]
    const forge = forgeries[n] ?? assert.fail()
    const kinds = ['limit:account', 'guesses', 'guesses:pending', 'guesses:devices']
    const ofAccount = kinds.map((kind) => `${kind}:${account}`)
    const ofDevice = ['limit:device', 'guesses:device-pending'].map((kind) => `${kind}:${device}`)
    const keys = [...ofAccount, ...ofDevice].map((name) => `${namespace.queuePrefix}:${name}`)
    for (const key of keys) {
      await redis.del(key)
      await forge(key)
    }
    for (let n = 0; n < 10; n += 1) assertProblem(await guess(n, owner, known(deviceToken)), 401, 'invalid_credentials')
    await fail(BOUND, owner)
    assertProblem(await here.login(owner, known(deviceToken)), 429, 'challenge_required')
    for (const key of keys) assert.notEqual(await redis.pttl(key), -1, key)
  }
})

test('a login that is answered by a ticket is counted, and gives the device its token at any gateway', async () => {
  const owner = await here.newAccount()
  const { ticket } = expect(202, await here.login(owner, respondAsync))
  const { deviceToken } = expect(200, await there.redeem(ticket))
  const [first, second] = [
    expect(202, await guess(0, owner, respondAsync)),
    expect(202, await guess(1, owner, respondAsync)),
  ]
  assertProblem(await guess(0, owner), 429, 'too_many_requests')
  expect(200, await here.login(owner, known(deviceToken)))
  for (const guessed of [first, second]) assertProblem(await there.redeem(guessed.ticket), 401, 'invalid_credentials')
  const right = await here.login(owner, answering(solve((await guess(0, owner)).body.challenge)))
  expect(200, right)
  // At the gateway that let it in, whose next command waits until Redis has forgotten the failures.
  assertProblem(await guess(1, owner), 401, 'invalid_credentials')
})

test('where sessions are cookies, the token is one as well', async () => {
  const { api } = await system.gateway({ ...held, SESSION_COOKIE: 'true' })
  const owner = await api.newAccount()
  const deviceOf = ({ headers }: Answer) =>
    headers.getSetCookie().find((text) => text.startsWith('__Host-spillway-device='))
  const cookie = deviceOf(await api.login(owner)) ?? ''
  assert.match(cookie, /^[\w-]+=[\w.-]+; Max-Age=7776000; Path=\/; Secure; HttpOnly; SameSite=Strict$/)
  assert.equal((await here.login(owner)).headers.get('set-cookie'), null)
  await fail(BOUND, owner)
  const [pair = ''] = cookie.split(';')
  expect(200, await api.login(owner, { headers: { cookie: `theme=dark; ${pair}; other=1` } }))
  const { ticket } = expect(202, await api.login(owner, { headers: { cookie: pair, prefer: 'respond-async' } }))
  assert.notEqual(deviceOf(await api.redeem(ticket)), undefined)
})

const noticed = (kind: string) => readMetric(opsUrl, 'spillway_attacks_noticed_total', `kind="${kind}"`)

/**
 * Fails on so many accounts. Few at a time: what is answered by a ticket shows its password to no
 * count, and is tried again with another account.
 */
async function spray(
  times: number,
  account: () => Credentials | Promise<Credentials>,
  addressOf: (n: number) => string,
): Promise<void> {
  const failFrom = async (address: string): Promise<void> => {
    const [credentials, options] = [await account(), { ...keepTicket, headers: { 'x-forwarded-for': address } }]
    const answer = await patiently(() => here.login(credentials, options))
    if (answer.status === 202) return failFrom(address)
    assertProblem(answer, 401, 'invalid_credentials')
  }
  for (let n = 0; n < times; n += 5) await Promise.all([0, 1, 2, 3, 4].map((more) => failFrom(addressOf(n + more))))
}

test('a network from which a hundred accounts are tried is noticed, once, and so is an address', async () => {
  const before = await noticed('network')
  await spray(110, newCredentials, (n) => `2001:db8:77:${n.toString(16)}::1`)
  await until(async () => (await noticed('network')) === before + 1, { what: 'the network noticed' })
  await spray(60, newCredentials, () => '198.51.100.7')
  await until(async () => (await noticed('network')) === before + 2, { what: 'the address noticed' })
})

test('accounts whose hash no worker verifies are noticed as any other', async () => {
  const before = await noticed('network')
  const unsupported = () => accountWithHash(system.database, '$unsupported$1$damaged')
  await spray(110, unsupported, (n) => `2001:db8:78:${n.toString(16)}::1`)
  await until(async () => (await noticed('network')) === before + 1, { what: 'the network noticed' })
})

test('what is no count of accounts, in the place of one, hides no network', async () => {
  const probed = `${system.namespace.queuePrefix}:probed`
  await system.redis.lpush(`${probed}:192.0.2.9`, 'a list')
  await system.redis.set(`${probed}:192.0.2.0/24`, 'a text')
  const before = await noticed('network')
  await spray(60, newCredentials, () => '192.0.2.9')
  await until(async () => (await noticed('network')) === before + 1, { what: 'the address noticed' })
})

test('one password that fails on many accounts from many networks is noticed, once', async () => {
  const before = await noticed('password')
  const sprayed = () => ({ ...newCredentials(), password: 'Winter2026!' })
  await spray(70, sprayed, (n) => `203.0.${n}.1`)
  await until(async () => (await noticed('password')) === before + 1, { what: 'the password noticed' })
})

test('the audit has that a challenge was asked for, as of any refusal', async () => {
  const { email } = newCredentials()
  await fail(BOUND, { email, password: '' })
  assertProblem(await guess(0, { email, password: '' }), 429, 'challenge_required')
  const asked = { event: 'rate_limit', outcome: 'guesses_challenged' }
  await until(async () => (await system.database.auditEvent.count({ where: asked })) > 0, { what: 'the event' })
})

test('Redis holds no address, nothing that was made from a password, and nothing for ever', async () => {
  const { email } = newCredentials()
  const { redis, namespace } = system
  const keysNow = async () => new Set(await redis.keys(`${namespace.queuePrefix}:*`))
  const before = await keysNow()
  await guess(1, { email, password: '' })
  const made = [...(await keysNow())].filter((key) => !before.has(key))
  const ours = made.filter((key) => /:(guesses|limit|challenge|probed)/.test(key))
  assert.ok(ours.length > 0)
  for (const key of ours) {
    assert.doesNotMatch(key, /example|guess 1/)
    // -2: the attempt has ended since the keys were read.
    assert.notEqual(await redis.pttl(key), -1, key)
  }
  const failures = ours.filter((key) => key.includes(':guesses:'))
  assert.equal(failures.length, 1, failures.join())
  assert.deepEqual(Object.keys(await redis.hgetall(failures[0] ?? '')).sort(), ['failedAt', 'failures'])
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
