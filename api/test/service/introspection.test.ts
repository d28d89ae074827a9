// Introspection (RFC 7662) on the service port: whether an access token is good now.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { newSigningKey } from '@spillway/infra/start/secrets'
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import { test } from 'vitest'
import { assertProblem, expect, fetchPatiently } from '../client.ts'
import { createForger, privateKeyOf } from '../forgeries.ts'
import { shareSystem } from '../system.ts'

const newKey = () => randomBytes(32).toString('base64')
/** With a plus and a slash, which clients may encode. */
const [shop, crm] = [`++//${newKey().slice(4)}`, newKey()]
const system = await shareSystem()
const signing = newSigningKey('key', 'ES256')
const { api, serviceUrl = '' } = await system.gateway({
  ...{ SPILLWAY_JWT_KEYS: signing, SERVICE_KEYS: `shop:${shop},crm:${crm}`, SERVICE_PORT: '0' },
})
const credentials = await api.newAccount()

interface Introspected {
  status: number
  headers: Headers
  body: Record<string, unknown>
}
async function introspect(form: string, authorization = `Bearer ${shop}`, headers = {}): Promise<Introspected> {
  const answer = await fetchPatiently(`${serviceUrl}/v1/introspect`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: form,
  })
  return { status: answer.status, headers: answer.headers, body: JSON.parse(await answer.text()) }
}
const basic = (name: string, key: string) => `Basic ${Buffer.from(`${name}:${key}`).toString('base64')}`

test('a good token is active, with its claims; its session ends, and it is not', async () => {
  const { accessToken, refreshToken } = expect(200, await api.login(credentials))
  const { status, headers, body } = await introspect(`token=${accessToken}&token_type_hint=access_token`)
  assert.equal(status, 200)
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.deepEqual(body, { ...decodeJwt(accessToken), active: true, token_type: 'Bearer' })
  const next = expect(200, await api.refresh(refreshToken))
  for (const token of [accessToken, next.accessToken])
    assert.equal((await introspect(`token=${token}`)).body.active, true)

  expect(204, await api.logout(next.refreshToken))
  for (const token of [accessToken, next.accessToken])
    assert.deepEqual((await introspect(`token=${token}`)).body, { active: false })
  await jwtVerify(accessToken, createRemoteJWKSet(new URL(`${api.url}/.well-known/jwks.json`)))
})

test('forged tokens, and what is no access token, are not active, and nothing else is said of them', async () => {
  const { accessToken, refreshToken } = expect(200, await api.login(credentials))
  const payload = decodeJwt(accessToken)
  const forger = createForger({ ...{ key: privateKeyOf(signing), kid: 'key', alg: 'ES256' }, payload, accessToken })
  const forgeries = { ...(await forger.forgeries()), refreshToken, nothing: '', text: 'nonsense' }
  for (const [kind, token] of Object.entries(forgeries)) {
    const { status, body } = await introspect(new URLSearchParams({ token }).toString())
    assert.deepEqual([status, body], [200, { active: false }], kind)
  }
  expect(200, await api.me(accessToken))
})

test('a service shows its key as a bearer token or, as clients of OAuth do, with its name', async () => {
  const { accessToken } = expect(200, await api.login(credentials))
  const form = `token=${accessToken}`
  for (const good of [`Bearer ${crm}`, basic('shop', shop), basic('shop', encodeURIComponent(shop)), basic('crm', crm)])
    assert.equal((await introspect(form, good)).body.active, true, good)
  for (const bad of ['', `Bearer ${accessToken}`, basic('crm', shop), basic('shop', ''), basic('shop', newKey())]) {
    const { status, body } = await introspect(form, bad)
    assert.deepEqual([status, body.code], [401, 'invalid_service_key'], bad)
  }
})

test('a request that is no form, or has no token or two, is refused', async () => {
  const json = { 'content-type': 'application/json' }
  for (const [expected, form, headers] of [
    [415, 'token=x', { 'content-type': 'text/plain' }],
    [422, 'hint=x', {}],
    [400, 'token=x&token=y', {}],
    [422, '{}', json],
  ] as const)
    assert.equal((await introspect(form, undefined, headers)).status, expected, form)
})

test('introspection is on the service port alone', async () => {
  const answer = await fetch(`${api.url}/v1/introspect`, { method: 'POST', body: new URLSearchParams({ token: 'x' }) })
  const { status, headers } = answer
  assertProblem({ status, headers, body: JSON.parse(await answer.text()) }, 404, 'not_found')
})
