// The keys that sign access tokens: which are taken, published and refused.
import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { newSigningKey } from '@spillway/infra/start/secrets'
import { calculateJwkThumbprint, compactVerify, importJWK } from 'jose'
import { test } from 'vitest'
import { algorithms, SigningKeys } from '../../src/sessions/access-tokens.ts'

/** Private and public half of RFC 8037, appendix A, the former in PKCS#8. */
const PRIVATE = Buffer.concat([
  Buffer.from('302e020100300506032b657004220420', 'hex'),
  Buffer.from('nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A', 'base64url'),
]).toString('base64')
const PUBLIC = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'
/** Of RFC 8037, appendix A.3. */
const THUMBPRINT = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'
const other = encode(generateKeyPairSync('ed25519').privateKey)
/** One of each type, without an id: making an RSA key takes long. */
const keys = new Map(algorithms.map((alg) => [alg, newSigningKey('x', alg).slice('x:'.length)]))

test('each type of key signs by its own algorithm, and its public half verifies that', async () => {
  for (const alg of algorithms) {
    const { signing, jwks } = await SigningKeys.parse(`k1:${keys.get(alg)},k2:${other}`)
    assert.deepEqual([signing.kid, signing.alg], ['k1', alg])
    const signed = `${base64url({ alg })}.${base64url({ sub: 'someone' })}`
    const token = `${signed}.${(await signing.sign(Buffer.from(signed))).toString('base64url')}`
    const keyOf = async (kid: string) => await importJWK(jwks.keys.find((key) => key.kid === kid) ?? {}, alg)
    assert.equal((await compactVerify(token, await keyOf('k1'))).protectedHeader.alg, alg)
    await assert.rejects(async () => compactVerify(token, await keyOf('k2')), alg)
  }
})

test('the first key signs, and the public halves of all are published, in order', async () => {
  const lines = [`p:${keys.get('ES256')}`, `r:${keys.get('RS256')}`]
  const { signing, jwks, verifying } = await SigningKeys.parse(`k1:${PRIVATE}, ${lines} `)
  assert.equal(signing.kid, 'k1')
  assert.deepEqual(jwks.keys[0], { kty: 'OKP', crv: 'Ed25519', x: PUBLIC, kid: 'k1', alg: 'EdDSA', use: 'sig' })
  assert.deepEqual(
    jwks.keys.map((key) => `${Object.keys(key).sort()} ${key.kid} ${key.alg}`),
    ['alg,crv,kid,kty,use,x k1 EdDSA', 'alg,crv,kid,kty,use,x,y p ES256', 'alg,e,kid,kty,n,use r RS256'],
  )
  const published = verifying.map(({ kid, alg }) => `${kid} ${alg}`)
  assert.deepEqual(published, ['k1 EdDSA', 'p ES256', 'r RS256'])
})

test('a key without an id gets its thumbprint', async () => {
  const { signing, jwks } = await SigningKeys.parse([PRIVATE, ...keys.values()].join())
  assert.equal(signing.kid, THUMBPRINT)
  for (const { kid, ...jwk } of jwks.keys) assert.equal(kid, await calculateJwkThumbprint(jwk))
  assert.equal((await SigningKeys.parse(`${THUMBPRINT}:${PRIVATE}`)).signing.kid, THUMBPRINT)
})

test('a value that is not a list of such keys is refused in one sentence, which quotes no part of the value', async () => {
  const refused = [
    '',
    `k1:${PRIVATE},`,
    `k1:${PRIVATE.slice(0, 40)}`,
    `k1:${encode(generateKeyPairSync('rsa', { modulusLength: 2_040 }).privateKey)}`,
    `k1:${encode(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey)}`,
    `k1:${encode(generateKeyPairSync('ed448').privateKey)}`,
    `${'k'.repeat(65)}:${PRIVATE}`,
    `k1:${PRIVATE}!`,
  ]
  for (const text of refused) {
    await assert.rejects(SigningKeys.parse(text), {
      message:
        'SPILLWAY_JWT_KEYS must be a comma-separated list of kid:base64 or base64, each an Ed25519, P-256 or RSA key ' +
        '(of 2048 bits or more) in PKCS#8 DER',
    })
  }
  for (const twice of [`k1:${PRIVATE},k1:${other}`, `${PRIVATE},${PRIVATE}`])
    await assert.rejects(SigningKeys.parse(twice), { message: 'SPILLWAY_JWT_KEYS names a key id twice' })
})

test('another list is taken by the same checks, and a key keeps its id', async () => {
  const [one, two] = [`k1:${PRIVATE}`, `k2:${keys.get('ES256')}`]
  const rotated = await SigningKeys.parse(one)
  await rotated.replace(`${two},${one}`)
  assert.deepEqual([rotated.signing.kid, rotated.signing.alg, rotated.kids()], ['k2', 'ES256', ['k2', 'k1']])
  assert.deepEqual(
    rotated.jwks.keys.map(({ kid }) => kid),
    ['k2', 'k1'],
  )
  for (const wrong of ['', `${two},`, `${one},${one}`, `k2:${other}`])
    await assert.rejects(rotated.replace(wrong), /^Error: SPILLWAY_JWT_KEYS [^\n]+$/)
  assert.deepEqual(rotated.kids(), ['k2', 'k1'])
})

function encode(key: KeyObject): string {
  return key.export({ format: 'der', type: 'pkcs8' }).toString('base64')
}

function base64url(json: object): string {
  return Buffer.from(JSON.stringify(json)).toString('base64url')
}
