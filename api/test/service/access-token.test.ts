// Access tokens from outside: verified by another library, and forged in the usual ways.
import assert from 'node:assert/strict'
import { newSigningKey } from '@spillway/infra/start/secrets'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { test } from 'vitest'
import { algorithms } from '../../src/sessions/access-tokens.ts'
import { assertProblem, type Body, expect } from '../client.ts'
import { createForger, privateKeyOf } from '../forgeries.ts'
import { shareSystem } from '../system.ts'

const audience = { issuer: 'spillway', audience: 'spillway' }
const system = await shareSystem()
const older = newSigningKey('older', 'EdDSA')
const { api } = await system.gateway({ SPILLWAY_JWT_KEYS: older, ACCESS_TOKEN_TTL_S: '120' })
const jwks = (at: string) => createRemoteJWKSet(new URL(`${at}/.well-known/jwks.json`))

const { account, accessToken } = await api.signedIn()

test('an access token is verified with the published keys, and says who, in which session, and how long', async () => {
  const user = expect(200, await api.me(accessToken))
  const { payload, protectedHeader } = await jwtVerify(accessToken, jwks(api.url), audience)
  assert.equal(payload.sub, user.id)
  const session = await system.database.session.findUnique({ where: { id: String(payload.sid) } })
  assert.equal(session?.userId, user.id)
  assert.equal(Number(payload.exp) - Number(payload.iat), 120)
  assert.ok(Math.abs(Number(payload.iat) - Date.now() / 1_000) < 60)
  assert.deepEqual(protectedHeader, { alg: 'EdDSA', typ: 'JWT', kid: 'older' })
  assert.match(String(payload.jti), /^[0-9a-f-]{36}$/)
})

test('a token says when its user logged in, also after a refresh, and more only where it is asked to', async () => {
  const { api: telling } = await system.gateway({ SPILLWAY_JWT_KEYS: older, TOKEN_CLAIMS: 'email_verified, email' })
  const first = expect(200, await telling.login(account))
  const claimsOf = async ({ accessToken }: Body) => (await jwtVerify(accessToken, jwks(telling.url), audience)).payload
  const before = await claimsOf(first)
  const { createdAt } = (await system.database.session.findUnique({ where: { id: String(before.sid) } })) ?? {}
  assert.equal(before.auth_time, Math.floor(Number(createdAt) / 1_000))
  assert.deepEqual([before.email, before.email_verified], [account.email, false])

  await system.database
    .$executeRaw`UPDATE sessions SET created_at = now() - interval '1 hour' WHERE id = ${before.sid}::uuid`
  await system.database.$executeRaw`UPDATE users SET email_confirmed_at = now() WHERE id = ${before.sub}::uuid`
  const after = await claimsOf(expect(200, await telling.refresh(first.refreshToken)))
  const anHourLess = Number(before.auth_time) - 3_600
  assert.ok(Number(after.auth_time) < anHourLess + 60 && Number(after.auth_time) >= anHourLess)
  assert.deepEqual([after.email, after.email_verified], [account.email, true])

  const plain = await claimsOf(expect(200, await api.login(account)))
  assert.deepEqual(Object.keys(plain).sort(), ['aud', 'auth_time', 'exp', 'iat', 'iss', 'jti', 'sid', 'sub'])
})

test.each(algorithms)('forged tokens are refused where %s signs', async (alg) => {
  const other = alg === 'EdDSA' ? 'ES256' : 'EdDSA'
  const [signing, beside] = [newSigningKey('key', alg), newSigningKey('beside', other)]
  const gateway = await system.gateway({ SPILLWAY_JWT_KEYS: `${signing},${beside}` })
  const { accessToken } = expect(200, await gateway.api.login(account))
  const { payload } = await jwtVerify(accessToken, jwks(gateway.url), audience)
  const forger = createForger({ key: privateKeyOf(signing), kid: 'key', alg, payload, accessToken })

  expect(200, await gateway.api.me(await forger.signed({})))
  expect(200, await gateway.api.me(await forger.signed({ aud: ['someone-else', 'spillway'] })))
  const forgeries = {
    ...(await forger.forgeries()),
    'a session that is no id': await forger.signed({ sid: 'x' }),
    'no session': await forger.signed({ sid: undefined }),
    'another session': await forger.signed({ sid: '00000000-0000-4000-8000-000000000000' }),
    'another user': await forger.signed({ sub: '00000000-0000-4000-8000-000000000000' }),
    'the right key under no id': await forger.signed({}, { header: { alg } }),
    'an accepted key of another type under this id': await forger.signed(
      {},
      { key: privateKeyOf(beside), header: { alg: other, kid: 'key' } },
    ),
    'no token': 'token',
  }
  for (const [kind, forgery] of Object.entries(forgeries)) {
    const answer = await gateway.api.me(forgery)
    assert.equal(answer.body.code, 'invalid_token', kind)
    assert.equal(answer.status, 401, kind)
    assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer/, kind)
  }
})

test('a header that carries no bearer token is refused', async () => {
  for (const authorization of ['', 'Bearer ', accessToken, `Basic ${accessToken}`]) {
    assertProblem(await api.call('GET', '/v1/me', { headers: { authorization } }), 401, 'invalid_token')
  }
  assertProblem(await api.call('GET', '/v1/me'), 401, 'invalid_token')
})

test('tokens are for the audience that was set, and no other', async () => {
  const other = await system.gateway({ SPILLWAY_JWT_KEYS: older, JWT_AUDIENCE: 'another-service' })
  const fresh = expect(200, await other.api.login(account))
  await jwtVerify(fresh.accessToken, jwks(api.url), { ...audience, audience: 'another-service' })
  expect(200, await other.api.me(fresh.accessToken))
  assertProblem(await api.me(fresh.accessToken), 401, 'invalid_token')
  assertProblem(await other.api.me(accessToken), 401, 'invalid_token')
})
