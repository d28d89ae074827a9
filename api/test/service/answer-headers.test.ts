// The headers that every public answer has, also without a route.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, test } from 'vitest'
import {
  type Answer,
  call,
  changePassword,
  expect,
  login,
  logout,
  me,
  newAccount,
  newCredentials,
  redeem,
  refresh,
  register,
  respondAsync,
} from '../client.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
afterAll(() => system.close())
const { url } = await system.gateway()

test('no answer may be kept in a cache or taken for another media type', async () => {
  const credentials = await newAccount(url)
  const { accessToken, refreshToken } = expect(200, await login(url, credentials))
  const { ticket } = expect(202, await login(url, credentials, respondAsync))
  const change = { currentPassword: credentials.password, newPassword: 'another pass phrase' }
  const answers: [number, Promise<Answer>][] = [
    [201, register(url, newCredentials())],
    [409, register(url, credentials)],
    [422, register(url, { email: '', password: '' })],
    [200, login(url, credentials)],
    [401, login(url, newCredentials())],
    [202, login(url, credentials, respondAsync)],
    [400, redeem(url, 'nonsense')],
    [200, me(url, accessToken)],
    [401, me(url, 'nonsense')],
    [401, refresh(url, 'nonsense')],
    [204, logout(url, 'nonsense')],
    [200, call(url, 'GET', '/healthz')],
    [200, call(url, 'GET', '/readyz')],
    [200, call(url, 'GET', '/openapi.json')],
    [404, call(url, 'GET', '/nothing')],
    [405, call(url, 'GET', '/v1/login')],
    [400, call(url, 'GET', '/v1/%zz')],
    [415, call(url, 'POST', '/v1/login', { body: {}, headers: { 'content-type': 'text/plain' } })],
  ]
  for (const [status, pending] of answers) assertHeaders(status, await pending)
  assertHeaders(200, await redeem(url, ticket))
  assertHeaders(200, await refresh(url, refreshToken))
  assertHeaders(204, await changePassword(url, accessToken, change))
})

test('neither may what is answered to what is no HTTP', async () => {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write('nonsense\r\n\r\n')
  const answer = await text(socket)
  assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/)
  assert.match(answer, /\r\ncache-control: no-store\r\n/)
  assert.match(answer, /\r\nx-content-type-options: nosniff\r\n/)
})

test('public answers that rarely change may be cached, and are sent with nosniff as well', async () => {
  for (const [path, kept] of [
    ['/.well-known/jwks.json', /max-age=300/],
    ['/docs/static/swagger-ui.css', /max-age/],
  ] as const) {
    const { headers } = await fetch(url + path)
    assert.match(headers.get('cache-control') ?? '', kept)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
  }
})

function assertHeaders(status: number, answer: Answer): void {
  expect(status, answer)
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
}
