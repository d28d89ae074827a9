// The headers that every public answer has, also without a route.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { readGatewayConfig } from '../../src/config.ts'
import { type Answer, exchange, expect, newCredentials, respondAsync } from '../client.ts'
import { heldAnyway, shareSystem } from '../system.ts'

const system = await shareSystem()
const { api } = await system.gateway()

test('no answer may be kept in a cache or taken for another media type', async () => {
  const { account: credentials, accessToken, refreshToken } = await api.signedIn()
  const { ticket } = expect(202, await api.login(credentials, respondAsync))
  const answers: [number, Promise<Answer>][] = [
    [201, api.register(newCredentials())],
    [422, api.register({ email: '', password: '' })],
    [200, api.login(credentials)],
    [202, api.login(credentials, respondAsync)],
    [400, api.redeem('nonsense')],
    [200, api.me(accessToken)],
    [401, api.refresh('nonsense')],
    [204, api.logout('nonsense')],
    [200, api.call('GET', '/healthz')],
    [404, api.call('GET', '/nothing')],
    [400, api.call('GET', '/v1/%zz')],
    [415, api.call('POST', '/v1/login', { body: {}, headers: { 'content-type': 'text/plain' } })],
  ]
  for (const [status, pending] of answers) assertHeaders(status, await pending)
  assertHeaders(200, await api.redeem(ticket))
  assertHeaders(200, await api.refresh(refreshToken))
  assertHeaders(204, await api.changePassword(accessToken, credentials.password))
})

test('a connection stays open for longer than load balancers keep it, or as long as is set', async () => {
  assert.equal((await api.call('GET', '/healthz')).headers.get('keep-alive'), 'timeout=72, max=1000')
  const patient = await system.gateway({ KEEP_ALIVE_S: '620' })
  assert.equal((await patient.api.call('GET', '/healthz')).headers.get('keep-alive'), 'timeout=620, max=1000')
})

test('public answers that rarely change may be cached, and are sent with nosniff as well', async () => {
  for (const [path, kept] of [
    ['/.well-known/jwks.json', /max-age=300/],
    ['/docs/static/swagger-ui.css', /max-age/],
  ] as const) {
    const { headers } = await fetch(api.url + path)
    assert.match(headers.get('cache-control') ?? '', kept)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
  }
})

function assertHeaders(status: number, answer: Answer): void {
  expect(status, answer)
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
}

// Pages of other origins: what they may ask and read. The API is closed to unnamed ones.

const APP = 'https://app.example.test'
const OTHER = 'https://other.example.test'

const PHONE = 'capacitor://localhost'
const origins = `${APP}, http://127.0.0.1:8080, https://*.preview.example.test, ${PHONE}`
const open = await system.gateway({ CORS_ORIGINS: origins }, heldAnyway)
const closed = await system.gateway()

const preflight = (origin: string) => ({
  headers: { origin, 'access-control-request-method': 'PUT', 'access-control-request-headers': 'authorization' },
})

test('without the setting the API is closed: no answer may be read, and a preflight is refused', async () => {
  const answer = await closed.api.call('GET', '/healthz', { headers: { origin: APP } })
  assert.equal(answer.headers.get('access-control-allow-origin'), null)
  assert.equal(answer.headers.get('vary'), null)
  assert.equal((await closed.api.call('OPTIONS', '/v1/login', preflight(APP))).status, 405)
})

test('a page of a named origin may read every answer, whatever it is, and when to come back', async () => {
  const headers = { origin: APP }
  const json = { ...headers, 'content-type': 'application/json' }
  const asked: [number, string, string, RequestInit?][] = [
    [200, 'GET', '/healthz'],
    [200, 'GET', '/openapi.json'],
    [404, 'GET', '/v1/nothing'],
    [405, 'OPTIONS', '/v1/login'],
    [400, 'GET', '/v1/%zz'],
    [400, 'POST', '/v1/login', { headers: json, body: '{' }],
    [413, 'POST', '/v1/login', { headers: json, body: ' '.repeat(20_000) }],
    [401, 'POST', '/v1/login', { headers: json, body: JSON.stringify(newCredentials()) }],
  ]
  for (const [status, method, path, init = {}] of asked) {
    const answer = await fetch(open.url + path, { headers, ...init, method })
    await answer.arrayBuffer()
    assert.equal(answer.status, status, path)
    assertReadable(answer.headers, `${method} ${path}`)
  }
})

test('a page can read that a limit refuses it; preflights do not count', async () => {
  const { api } = await system.gateway({ CORS_ORIGINS: APP, LIMIT_PER_ADDRESS: '1', TRUST_PROXY: '127.0.0.1' })
  const headers = { origin: APP, 'x-forwarded-for': '198.51.100.99' }
  for (let n = 0; n < 5; n += 1) assert.equal((await api.call('OPTIONS', '/v1/login', preflight(APP))).status, 204)
  assert.equal((await api.login(newCredentials(), { headers })).status, 401)
  const refused = await api.login(newCredentials(), { headers })
  assert.equal(refused.status, 429)
  assert.ok(Number(refused.headers.get('retry-after')) >= 1)
  assertReadable(refused.headers, '429')
})

test('what a gateway answers past its routes can be read too: a body that does not arrive, a request without Host', async () => {
  const { url } = await system.gateway({ CORS_ORIGINS: APP, REQUEST_TIMEOUT_MS: '1000' })
  const head = `POST /v1/login HTTP/1.1\r\nConnection: close\r\nOrigin: ${APP}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n`
  for (const [status, text] of [
    [408, `${head}Host: x\r\n\r\n{`],
    [400, `${head}\r\n{"a":"b"}`],
    [417, `${head}Host: x\r\nExpect: 200-maybe\r\n\r\n{"a":"bc"`],
  ] as const) {
    const answer = await exchange(url, text)
    assert.match(answer, status === 417 ? /^HTTP\/1\.1 4/ : new RegExp(`^HTTP/1\\.1 ${status} `), answer)
    assert.match(answer, new RegExp(`access-control-allow-origin: ${APP}\r\n`, 'i'), answer)
    assert.match(answer, /access-control-expose-headers: [^\r]*Retry-After/i)
  }
})

test('a preflight names what may be sent, for any path, and needs no credentials', async () => {
  for (const path of ['/v1/login', '/v1/me/sessions/6f1d2b1e-6d0c-4c44-9a6e-0a3f5f3c1b7a', '/anything']) {
    const { status, headers } = await open.api.call('OPTIONS', path, preflight(APP))
    assert.equal(status, 204)
    assertReadable(headers, path)
    for (const method of ['GET', 'POST', 'PUT', 'DELETE'])
      assert.ok(list(headers, 'access-control-allow-methods').includes(method.toLowerCase()))
    // The second line is what Sentry and Datadog add to the requests of a page.
    for (const name of [
      ...['authorization', 'content-type', 'prefer', 'spillway-device'],
      ...[
        'baggage',
        'sentry-trace',
        'x-datadog-origin',
        'x-datadog-parent-id',
        'x-datadog-sampling-priority',
        'x-datadog-trace-id',
      ],
    ])
      assert.ok(list(headers, 'access-control-allow-headers').includes(name), name)
    assert.equal(headers.get('access-control-allow-credentials'), null)
  }
})

test.each([
  [PHONE, true],
  ['https://branch-7.preview.example.test', true],
  ['https://a.b.preview.example.test', false],
  ['https://preview.example.test', false],
  ['http://branch-7.preview.example.test', false],
  ['https://branch-7.preview.example.test.evil.test', false],
  ['https://evil.test/.preview.example.test', false],
  ['tauri://localhost', false],
])('a page of %s may read an answer: %s', async (origin, isAllowed) => {
  const { headers } = await open.api.call('GET', '/healthz', { headers: { origin } })
  assert.equal(headers.get('access-control-allow-origin'), isAllowed ? origin : null)
})

test('a page of any other origin is told nothing, and caches keep the answers apart', async () => {
  for (const origin of [OTHER, 'null', `${APP}.evil.test`, `${APP}:8443`, APP.toUpperCase(), `${APP}/`]) {
    for (const answer of [
      await open.api.call('OPTIONS', '/v1/login', preflight(origin)),
      await open.api.call('GET', '/.well-known/jwks.json', { headers: { origin } }),
    ]) {
      const allowing = [...answer.headers.keys()].filter((name) => name.startsWith('access-control-'))
      assert.deepEqual(allowing, [], origin)
      assert.equal(answer.headers.get('vary'), 'Origin')
    }
  }
  assert.equal((await open.api.call('GET', '/healthz')).headers.get('vary'), 'Origin')
})

test('only origins as browsers send them are taken', () => {
  const config = (CORS_ORIGINS: string) => readGatewayConfig({ ...system.environment, CORS_ORIGINS }).corsOrigins
  const pages = ['', APP, `${APP},http://localhost:5173`, 'http://[::1]:8080', 'https://*.preview.example.test:8443']
  const own = [PHONE, 'tauri://localhost', 'app://.', 'app://-', 'chrome-extension://ghbmnnjooekpmoecnnnilnnbdlolhkhi']
  for (const right of [...pages, ...own, 'http://*.localhost:3000']) assert.equal(config(right), right)
  const wrong = ['*', 'null', `${APP}/`, `${APP}/page`, `${APP}:443`, 'https://APP.example.test', 'app.example.test']
  const wild = ['https://*', 'https://*.test', 'https://*.*.test', 'https://a*.example.test', 'app://*', '*://a.test']
  const ownWrong = ['file://', 'file://x', 'htps://app.example.test', 'wss://app.example.test', 'app://', `${PHONE}/`]
  for (const each of [...wrong, ...wild, ...ownWrong, 'https://*.example.test/x', `${APP} ${OTHER}`])
    assert.throws(() => config(`${APP},${each}`), /^Error: CORS_ORIGINS must be/, each)
})

test('with cookies a * is refused at the start', () => {
  const env = { ...system.environment, SESSION_COOKIE: 'true', CORS_ORIGINS: `${APP},https://*.preview.example.test` }
  assert.throws(() => readGatewayConfig(env), /^Error: CORS_ORIGINS must name each origin where SESSION_COOKIE is true/)
  assert.ok(readGatewayConfig({ ...env, CORS_ORIGINS: `${APP},${PHONE}` }))
})

function assertReadable(headers: Headers, what: string): void {
  assert.equal(headers.get('access-control-allow-origin'), APP, what)
  assert.equal(headers.get('vary'), 'Origin', what)
  const exposed = list(headers, 'access-control-expose-headers')
  for (const name of ['retry-after', 'ratelimit-reset', 'preference-applied'])
    assert.ok(exposed.includes(name), `${what}: ${name}`)
}

function list(headers: Headers, name: string): string[] {
  return (headers.get(name) ?? '').split(',').map((each) => each.trim().toLowerCase())
}
