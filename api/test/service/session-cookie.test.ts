// SESSION_COOKIE: the refresh token as a cookie, and who may use it.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { type Answer, assertProblem, type Client, expect } from '../client.ts'
import { shareSystem } from '../system.ts'

const APP = 'https://app.example.test'
const ISSUER = 'https://login.example.test'
const system = await shareSystem()
const { api } = await system.gateway({ SESSION_COOKIE: 'true', CORS_ORIGINS: APP, ISSUER })
const credentials = await api.newAccount()
const own = { 'sec-fetch-site': 'same-origin' }

/** The cookies of an answer, by name: value and attributes. */
function cookiesOf({ headers }: Answer): Record<string, { value: string; attributes: string }> {
  const cookies = headers.getSetCookie().map((text) => {
    const [, name = '', value = '', attributes = ''] = /^([^=]+)=([^;]*)(.*)$/.exec(text) ?? []
    return [name, { value, attributes }]
  })
  return Object.fromEntries(cookies)
}
const sessionOf = (answer: Answer) => cookiesOf(answer)['__Host-spillway-session']?.value ?? ''
const withCookie = (token: string, headers: Record<string, string> = own) => ({
  headers: { ...headers, cookie: `theme=dark; __Host-spillway-session=${token}; other=1` },
})
const refresh = (token: string, headers?: Record<string, string>) =>
  api.call('POST', '/v1/token/refresh', withCookie(token, headers))
const logout = (token: string, headers?: Record<string, string>) =>
  api.call('POST', '/v1/logout', withCookie(token, headers))

test('a login sets cookies that scripts cannot read, and its body has neither token', async () => {
  const answer = await api.login(credentials, { headers: own })
  const { accessToken, ...rest } = expect(200, answer)
  assert.deepEqual(rest, { tokenType: 'Bearer', expiresIn: 900 })
  const attributes = (maxAge: number) => `; Max-Age=${maxAge}; Path=/; Secure; HttpOnly; SameSite=Strict`
  const { '__Host-spillway-session': session, '__Host-spillway-device': device } = cookiesOf(answer)
  assert.match(session?.value ?? '', /^[\w-]{22}\.[\w-]{22}\.[\w-]{43}\.[\w-]{22}$/)
  assert.deepEqual([session?.attributes, device?.attributes], [attributes(1_209_600), attributes(7_776_000)])
  expect(200, await api.me(accessToken))
})

test('a refresh reads the cookie and replaces it, and a logout ends the session and takes it away', async () => {
  const first = sessionOf(await api.login(credentials, { headers: own }))
  const answer = await refresh(first)
  const { accessToken, ...rest } = expect(200, answer)
  assert.deepEqual(rest, { tokenType: 'Bearer', expiresIn: 900 })
  const second = sessionOf(answer)
  assert.notEqual(second, first)
  const left = await logout(second)
  expect(204, left)
  assert.deepEqual(cookiesOf(left)['__Host-spillway-session'], {
    value: '',
    attributes: '; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Strict',
  })
  assertProblem(await api.me(accessToken), 401, 'invalid_token')
  assertProblem(await refresh(second), 401, 'invalid_refresh_token')
})

test('a ticket is redeemed into the same cookies', async () => {
  const { ticket } = expect(202, await api.login(credentials, { headers: { ...own, prefer: 'respond-async' } }))
  const answer = await api.redeem(ticket, { headers: own })
  assert.equal('refreshToken' in expect(200, answer), false)
  expect(200, await refresh(sessionOf(answer)))
})

test('a token in a body is no token here, and visitors without a cookie have no limit in common', async () => {
  const { api } = await system.gateway({ SESSION_COOKIE: 'true', LIMIT_REFRESH_PER_SESSION: '2' })
  const refreshToken = sessionOf(await api.login(credentials, { headers: own }))
  const empty = { headers: own }
  for (let n = 0; n < 4; n += 1) {
    const ask = () => api.call('POST', '/v1/token/refresh', n % 2 ? empty : { ...empty, body: { refreshToken } })
    assertProblem(await ask(), 401, 'invalid_refresh_token')
  }
  let token = refreshToken
  for (let n = 0; n < 2; n += 1) {
    const answer = await api.call('POST', '/v1/token/refresh', withCookie(token))
    expect(200, answer)
    token = sessionOf(answer)
  }
  assertProblem(await api.call('POST', '/v1/token/refresh', withCookie(token)), 429, 'too_many_requests')
})

/** What a browser says of the page that asks, and whether that is one of ours. */
const { host } = new URL(api.url)
const pages: [boolean, Record<string, string>][] = [
  [true, { 'sec-fetch-site': 'same-origin' }],
  [true, { 'sec-fetch-site': 'same-site', origin: APP }],
  [true, { origin: APP }],
  [true, { origin: ISSUER }],
  [true, { origin: `https://${host}` }],
  [false, {}],
  [false, { 'sec-fetch-site': 'same-site' }],
  [false, { 'sec-fetch-site': 'cross-site', origin: 'https://attacker.test' }],
  [false, { origin: 'null' }],
  [false, { origin: `${APP}.attacker.test` }],
  [false, { origin: 'https://APP.example.test' }],
]

test('a cookie is refreshed and ended for pages of this origin and of CORS_ORIGINS alone', async () => {
  let token = sessionOf(await api.login(credentials, { headers: own }))
  for (const [isOurs, headers] of pages) {
    const answer = await refresh(token, headers)
    if (isOurs) token = sessionOf(answer)
    else {
      assertProblem(answer, 403, 'other_site')
      assertProblem(await logout(token, headers), 403, 'other_site')
      assert.deepEqual(answer.headers.getSetCookie(), [])
    }
    assert.equal(answer.status, isOurs ? 200 : 403, JSON.stringify(headers))
  }
  expect(200, await refresh(token))
})

test('nobody is logged in as somebody else by a page of another origin; programs, which name none, log in', async () => {
  for (const [isOurs, headers] of pages) {
    const isProgram = Object.keys(headers).length === 0
    const answer = await api.login(credentials, { headers })
    assert.equal(answer.status, isOurs || isProgram ? 200 : 403, JSON.stringify(headers))
    assert.equal(answer.headers.getSetCookie().length, answer.status === 200 ? 2 : 0)
  }
  const { ticket } = expect(202, await api.login(credentials, { headers: { prefer: 'respond-async' } }))
  const other = { headers: { 'sec-fetch-site': 'cross-site', origin: 'https://attacker.test' } }
  assertProblem(await api.redeem(ticket, other), 403, 'other_site')
})

test('credentials of pages are allowed where sessions are cookies, for named origins alone', async () => {
  const plain = await system.gateway({ CORS_ORIGINS: APP })
  const preflight = { 'access-control-request-method': 'POST' }
  const allowed = async (at: Client, origin: string) => {
    const asked = await at.call('GET', '/healthz', { headers: { origin } })
    const before = await at.call('OPTIONS', '/v1/login', { headers: { origin, ...preflight } })
    return [asked, before].map(({ headers }) => headers.get('access-control-allow-credentials'))
  }
  assert.deepEqual(await allowed(api, APP), ['true', 'true'])
  assert.deepEqual(await allowed(api, 'https://attacker.test'), [null, null])
  assert.deepEqual(await allowed(plain.api, APP), [null, null])
})
