// Access tokens, seen from outside: verified by another library with the published keys, and forged in the usual ways.
import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, createSecretKey } from 'node:crypto'
import { newSigningKey } from '@spillway/local/testing'
import { createRemoteJWKSet, exportJWK, type JWTHeaderParameters, jwtVerify, SignJWT, UnsecuredJWT } from 'jose'
import { afterAll, test } from 'vitest'
import { assertProblem, type Body, call, expect, login, me, newAccount, refresh } from '../client.ts'
import { shareSystem } from '../system.ts'

const [older, newer] = [newSigningKey('older'), newSigningKey('newer')]
const system = await shareSystem()
afterAll(() => system.close())
const { url } = await system.gateway({ SPILLWAY_JWT_KEYS: older, ACCESS_TOKEN_TTL_S: '120' })
const jwks = (at: string) => createRemoteJWKSet(new URL(`${at}/.well-known/jwks.json`))
const claims = { issuer: 'spillway', audience: 'spillway', algorithms: ['EdDSA'] }

const account = await newAccount(url)
const { accessToken } = expect(200, await login(url, account))
const { payload } = await jwtVerify(accessToken, jwks(url), claims)

test('an access token is verified with the published keys, and says who, in which session, and how long', async () => {
  const user = expect(200, await me(url, accessToken))
  const { payload, protectedHeader } = await jwtVerify(accessToken, jwks(url), claims)
  assert.equal(payload.sub, user.id)
  const session = await system.database.session.findUnique({ where: { id: String(payload.sid) } })
  assert.equal(session?.userId, user.id)
  assert.equal(Number(payload.exp) - Number(payload.iat), 120)
  assert.ok(Math.abs(Number(payload.iat) - Date.now() / 1_000) < 60)
  assert.equal(protectedHeader.kid, 'older')
})

test('a refreshed token is of the same session and user, and says how long it lasts', async () => {
  const first = expect(200, await login(url, account))
  const second = expect(200, await refresh(url, first.refreshToken))
  const [before, after] = await Promise.all(
    [first, second].map((tokens) => jwtVerify(tokens.accessToken, jwks(url), claims)),
  )
  assert.equal(after?.payload.sid, before?.payload.sid)
  assert.equal(after?.payload.sub, before?.payload.sub)
  assert.equal(second.expiresIn, 120)
})

test('the key set is public, cacheable, and holds no private part', async () => {
  const response = await fetch(`${url}/.well-known/jwks.json`)
  const { keys }: { keys: object[] } = JSON.parse(await response.text())
  assert.deepEqual(
    keys.map((key) => Object.keys(key).sort()),
    [['alg', 'crv', 'kid', 'kty', 'use', 'x']],
  )
  assert.match(response.headers.get('cache-control') ?? '', /max-age=\d+/)
})

test('forged tokens are refused', async () => {
  const key = privateKey(older)
  const pem = createPublicKey(key).export({ format: 'pem', type: 'spki' }).toString()
  const { x = '' } = await exportJWK(createPublicKey(key))
  const header = { alg: 'EdDSA', kid: 'older', typ: 'JWT' }
  const signed = (change: object, with_ = key, head: JWTHeaderParameters = header) =>
    new SignJWT({ ...payload, ...change }).setProtectedHeader(head).sign(with_)
  const [head = '', body = '', signature = ''] = accessToken.split('.')
  const other = Buffer.from(JSON.stringify({ ...payload, sub: '00000000-0000-4000-8000-000000000000' }))

  const forgeries: Record<string, string> = {
    'no algorithm': new UnsecuredJWT(payload).encode(),
    'no algorithm, named in capitals': `${encode({ alg: 'NONE', kid: 'older' })}.${body}.`,
    'the public key as a shared secret (PEM)': await signed({}, hmac(pem), { alg: 'HS256', kid: 'older' }),
    'the public key as a shared secret (bytes)': await signed({}, hmac(Buffer.from(x, 'base64url')), {
      alg: 'HS256',
      kid: 'older',
    }),
    'another key under a known id': await signed({}, privateKey(newSigningKey())),
    'another key under an unknown id': await signed({}, privateKey(newSigningKey()), { ...header, kid: 'unknown' }),
    'the right key under no id': await signed({}, key, { alg: 'EdDSA' }),
    'an id that is a property of every object': await signed({}, key, { ...header, kid: 'constructor' }),
    'expired a second ago': await signed({ exp: Math.floor(Date.now() / 1_000) - 1 }),
    'not valid yet': await signed({ nbf: Math.floor(Date.now() / 1_000) + 60 }),
    'no expiry': await signed({ exp: undefined }),
    'an expiry that is no time': await signed({ exp: 'tomorrow' }),
    'another issuer': await signed({ iss: 'someone-else' }),
    'no issuer': await signed({ iss: undefined }),
    'another audience': await signed({ aud: 'someone-else' }),
    'other audiences': await signed({ aud: ['someone', 'someone-else'] }),
    'no audience, as before there were any': await signed({ aud: undefined }),
    'no session': await signed({ sid: undefined }),
    'a session that is no id': await signed({ sid: 'x' }),
    'a session that is no text': await signed({ sid: { id: payload.sid } }),
    'a session in a list': await signed({ sid: [payload.sid] }),
    'no user': await signed({ sub: undefined }),
    'a user that is no id': await signed({ sub: 'x' }),
    'another session': await signed({ sid: '00000000-0000-4000-8000-000000000000' }),
    'another user': await signed({ sub: '00000000-0000-4000-8000-000000000000' }),
    'a changed payload': `${head}.${other.toString('base64url')}.${signature}`,
    'no signature': `${head}.${body}.`,
    'no token': 'token',
  }
  expect(200, await me(url, await signed({})))
  expect(200, await me(url, await signed({ aud: ['someone-else', 'spillway'] })))
  for (const [kind, forgery] of Object.entries(forgeries)) {
    const answer = await me(url, forgery)
    assert.equal(answer.body.code, 'invalid_token', kind)
    assert.equal(answer.status, 401, kind)
    assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer/, kind)
  }
})

test('a header that carries no bearer token is refused', async () => {
  for (const authorization of [
    '',
    'Bearer',
    'Bearer ',
    accessToken,
    `Basic ${accessToken}`,
    `Bearer ${accessToken} x`,
  ]) {
    assertProblem(await call(url, 'GET', '/v1/me', { headers: { authorization } }), 401, 'invalid_token')
  }
  assertProblem(await call(url, 'GET', '/v1/me'), 401, 'invalid_token')
})

test('tokens are for the audience that was set, and no other', async () => {
  const other = await system.gateway({ SPILLWAY_JWT_KEYS: older, JWT_AUDIENCE: 'another-service' })
  const fresh = expect(200, await login(other.url, account))
  await jwtVerify(fresh.accessToken, jwks(url), { ...claims, audience: 'another-service' })
  expect(200, await me(other.url, fresh.accessToken))
  assertProblem(await me(url, fresh.accessToken), 401, 'invalid_token')
  assertProblem(await me(other.url, accessToken), 401, 'invalid_token')
})

test('a signing key is rotated without ending a session', async () => {
  const between = await system.gateway({ SPILLWAY_JWT_KEYS: `${newer},${older}` })
  const afterwards = await system.gateway({ SPILLWAY_JWT_KEYS: newer })
  expect(200, await me(between.url, accessToken))
  await jwtVerify(accessToken, jwks(between.url), claims)

  const fresh: Body = expect(200, await login(between.url, account))
  const { protectedHeader } = await jwtVerify(fresh.accessToken, jwks(between.url), claims)
  assert.equal(protectedHeader.kid, 'newer')
  expect(200, await me(afterwards.url, fresh.accessToken))
  assertProblem(await me(afterwards.url, accessToken), 401, 'invalid_token')
})

function privateKey(entry: string) {
  const [, encoded = ''] = entry.split(':')
  return createPrivateKey({ key: Buffer.from(encoded, 'base64'), format: 'der', type: 'pkcs8' })
}

function hmac(secret: string | Buffer) {
  return createSecretKey(Buffer.from(secret))
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
