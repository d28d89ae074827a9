// Limits on credential requests: what is counted, for whom, and what the client is told.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { type Answer, asIs, assertProblem, expect, newCredentials, respondAsync } from '../client.ts'
import { openSystem, shareSystem } from '../system.ts'

const system = await shareSystem()
const limits = (perAddress: string, perAccount: string) => ({
  LIMIT_PER_ADDRESS: perAddress,
  LIMIT_PER_ACCOUNT: perAccount,
})
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
/** The first answer, also if it is a ticket: its redemption has other limits. */
const first = (address: string) => ({ ...from(address), ...asIs })

test('an account is tried so often a minute and no more, at whichever gateway and in whatever spelling', async () => {
  const [here, there] = await Promise.all([system.gateway(limits('0', '4')), system.gateway(limits('0', '4'))])
  const { email, password } = newCredentials()
  const [name = ''] = email.split('@')
  const spellings = [email, email.toUpperCase(), ` ${email}`, `${name}@EXAMPLE.test`]
  for (const [n, spelling] of spellings.entries()) {
    const answer = await (n % 2 ? here : there).api.login({ email: spelling, password })
    assertProblem(answer, 401, 'invalid_credentials')
    assertNoLimits(answer)
  }
  for (const { api } of [here, there]) {
    const answer = await api.login({ email, password })
    assertProblem(answer, 429, 'too_many_requests')
    assertLimits(answer, 4, 0)
    const retryAfterS = Number(answer.headers.get('retry-after'))
    assert.ok(retryAfterS >= 1 && retryAfterS <= 60)
  }
  assertProblem(await here.api.register({ email, password }), 429, 'too_many_requests')
  assertProblem(await here.api.login(newCredentials()), 401, 'invalid_credentials')
})

test('a change of password is counted for the account as well, and costs nothing beyond the limit', async () => {
  const { api } = await system.gateway(limits('0', '3'))
  const credentials = newCredentials()
  expect(201, await api.register(credentials))
  const { accessToken } = expect(200, await api.login(credentials))
  for (let n = 0; n < 3; n += 1) {
    assertProblem(await api.changePassword(accessToken, 'a guess'), 401, 'invalid_credentials')
  }
  assertProblem(await api.changePassword(accessToken, 'a guess'), 429, 'too_many_requests')
})

test('one address makes so many requests a minute and no more, whatever the account', async () => {
  const { api } = await system.gateway({ ...limits('3', '100'), TRUST_PROXY: '127.0.0.1' })
  for (let n = 0; n < 3; n += 1) {
    const answer = await api.login(newCredentials(), first('198.51.100.1'))
    assert.notEqual(answer.status, 429)
    assertLimits(answer, 3, 2 - n)
  }
  assertProblem(await api.register(newCredentials(), from('198.51.100.1')), 429, 'too_many_requests')
  assertProblem(await api.login(newCredentials(), from('198.51.100.2')), 401, 'invalid_credentials')
})

test('requests refused to an address do not count for the accounts that they name', async () => {
  const { api } = await system.gateway({ ...limits('2', '1'), TRUST_PROXY: '127.0.0.1' })
  const flood = from('198.51.100.4')
  for (let n = 0; n < 2; n += 1) expect(401, await api.login(newCredentials(), flood))
  const victim = newCredentials()
  for (let n = 0; n < 3; n += 1) {
    const answer = await api.login(victim, flood)
    assertProblem(answer, 429, 'too_many_requests')
    assertLimits(answer, 2, 0)
  }
  assertProblem(await api.login(victim, from('198.51.100.5')), 401, 'invalid_credentials')
  assertProblem(await api.login(victim, from('198.51.100.6')), 429, 'too_many_requests')
})

test('a client is told of its own limit, and nothing of an account until that refuses', async () => {
  const { api } = await system.gateway({ ...limits('9', '2'), TRUST_PROXY: '127.0.0.1' })
  const credentials = newCredentials()
  const stranger = from('198.51.100.8')
  expect(401, await api.login(newCredentials(), stranger))
  assertLimits(await api.login(credentials, first('198.51.100.7')), 9, 8)
  assertLimits(await api.login(credentials, first('198.51.100.8')), 9, 7)
  const refused = await api.login(credentials, stranger)
  assertProblem(refused, 429, 'too_many_requests')
  assertLimits(refused, 2, 0)
})

test('a session is refreshed so often a minute and no more, at whichever gateway, and goes on afterwards', async () => {
  const limit = { LIMIT_REFRESH_PER_SESSION: '3' }
  const [here, there] = await Promise.all([system.gateway(limit), system.gateway(limit)])
  const { api } = await system.gateway()
  const credentials = await api.newAccount()
  let { refreshToken } = expect(200, await api.login(credentials))
  const other = expect(200, await api.login(credentials))
  for (let n = 0; n < 3; n += 1)
    ({ refreshToken } = expect(200, await (n % 2 ? here : there).api.refresh(refreshToken)))
  for (const gateway of [here, there]) {
    const answer = await gateway.api.refresh(refreshToken)
    assertProblem(answer, 429, 'too_many_requests')
    assertLimits(answer, 3, 0)
    assert.ok(Number(answer.headers.get('retry-after')) >= 1)
  }
  expect(200, await here.api.refresh(other.refreshToken))
  expect(200, await api.refresh(refreshToken))
})

test('one address refreshes and ends sessions so often a minute and no more, and made-up tokens do not count', async () => {
  const { api } = await system.gateway({ LIMIT_REFRESH_PER_ADDRESS: '3', TRUST_PROXY: '127.0.0.1' })
  const post = (path: string, refreshToken: string, address: string) =>
    api.call('POST', path, { body: { refreshToken }, ...from(address) })
  const { refreshToken } = await api.signedIn()
  for (let n = 0; n < 3; n += 1) {
    expect(401, await post('/v1/token/refresh', 'made up', '198.51.100.20'))
    expect(204, await post('/v1/logout', 'made up', '198.51.100.20'))
    const answer = await post(n === 1 ? '/v1/logout' : '/v1/token/refresh', refreshToken, '198.51.100.20')
    assert.equal(answer.status, [200, 204, 401][n])
    assertLimits(answer, 3, 2 - n)
  }
  for (const path of ['/v1/token/refresh', '/v1/logout'])
    assertProblem(await post(path, refreshToken, '198.51.100.20'), 429, 'too_many_requests')
  expect(401, await post('/v1/token/refresh', refreshToken, '198.51.100.21'))
})

test('one address redeems so often a minute and no more, its ticket stays good, and made-up ones do not count', async () => {
  const { api } = await system.gateway({ LIMIT_REDEEM_PER_ADDRESS: '2', TRUST_PROXY: '127.0.0.1' })
  const { ticket: other } = expect(202, await api.register(newCredentials(), respondAsync))
  const { ticket } = expect(202, await api.register(newCredentials(), respondAsync))
  for (let n = 0; n < 3; n += 1) expect(400, await api.redeem('no ticket', from('198.51.100.22')))
  expect(201, await api.redeem(other, from('198.51.100.22')))
  expect(409, await api.redeem(other, from('198.51.100.22')))
  const refused = await api.redeem(ticket, from('198.51.100.22'))
  assertProblem(refused, 429, 'too_many_requests')
  assertLimits(refused, 2, 0)
  expect(201, await api.redeem(ticket, from('198.51.100.23')))
})

test('whoever is over a limit is refused from memory until the window ends', async () => {
  const { api } = await system.gateway({ ...limits('1', '0'), TRUST_PROXY: '127.0.0.1' })
  expect(401, await api.login(newCredentials(), from('198.51.100.24')))
  assertProblem(await api.login(newCredentials(), from('198.51.100.24')), 429, 'too_many_requests')
  await system.redis.del(`${system.namespace.queuePrefix}:limit:address:198.51.100.24`)
  const remembered = await api.login(newCredentials(), from('198.51.100.24'))
  assertProblem(remembered, 429, 'too_many_requests')
  assertLimits(remembered, 1, 0)
  expect(401, await api.login(newCredentials(), from('198.51.100.25')))
})

test("the client's address is believed of trusted proxies alone", async (t) => {
  const fresh = await openSystem(t)
  await fresh.worker()
  const believesNobody = await fresh.gateway({ ...limits('2', '0'), TRUST_PROXY: '' })
  const believesOthers = await fresh.gateway({ ...limits('2', '0'), TRUST_PROXY: '192.0.2.1, 2001:db8::/32' })
  expect(401, await believesNobody.api.login(newCredentials(), from('203.0.113.1')))
  expect(401, await believesOthers.api.login(newCredentials(), from('203.0.113.2')))
  for (const { api } of [believesNobody, believesOthers]) {
    assertProblem(await api.login(newCredentials(), from('203.0.113.3')), 429, 'too_many_requests')
  }
  const { api } = await fresh.gateway({ ...limits('2', '0'), TRUST_PROXY: '192.0.2.1, 127.0.0.1/8' })
  assertProblem(await api.login(newCredentials(), from('203.0.113.1')), 401, 'invalid_credentials')
})

test('a request that is not valid counts for no account', async () => {
  const { api } = await system.gateway(limits('0', '1'))
  const credentials = newCredentials()
  assertProblem(await api.login({ ...credentials, password: '' }), 422, 'invalid_request')
  assertProblem(await api.login(credentials), 401, 'invalid_credentials')
  assertProblem(await api.login(credentials), 429, 'too_many_requests')
})

function assertNoLimits({ headers }: Answer): void {
  for (const name of ['limit', 'remaining', 'reset']) assert.equal(headers.get(`ratelimit-${name}`), null)
}

function assertLimits({ headers }: Answer, limit: number, remaining: number): void {
  assert.equal(headers.get('ratelimit-limit'), String(limit))
  assert.equal(headers.get('ratelimit-remaining'), String(remaining))
  const resetS = Number(headers.get('ratelimit-reset'))
  assert.ok(resetS >= 1 && resetS <= 60)
}
