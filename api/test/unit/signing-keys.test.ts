// The keys that sign access tokens, as an operator gives them: what is taken, what is published, what is refused.
import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import { test } from 'vitest'
import { parseSigningKeys } from '../../src/sessions/signing-keys.ts'

/** Private and public half of RFC 8037, appendix A, the former in PKCS#8. */
const PRIVATE = Buffer.concat([
  Buffer.from('302e020100300506032b657004220420', 'hex'),
  Buffer.from('nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A', 'base64url'),
]).toString('base64')
const PUBLIC = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'
const other = generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')

test('the first key signs, all of them verify, and their public halves are published', () => {
  const keys = parseSigningKeys(`k1:${PRIVATE}, k-2_x:${other} `)
  assert.equal(keys.signing.kid, 'k1')
  const signature = sign(null, Buffer.from('claims'), createPrivateKey(keys.signing.privateKey))
  assert.equal(verify(null, Buffer.from('claims'), keys.publicKey('k1') ?? '', signature), true)
  assert.equal(verify(null, Buffer.from('claims'), keys.publicKey('k-2_x') ?? '', signature), false)
  assert.equal(keys.publicKey('k3'), undefined)
  assert.equal(keys.publicKey('constructor'), undefined)
  assert.deepEqual(keys.jwks.keys[0], { kty: 'OKP', crv: 'Ed25519', x: PUBLIC, kid: 'k1', alg: 'EdDSA', use: 'sig' })
  assert.deepEqual(
    keys.jwks.keys.map(({ kid }) => kid),
    ['k1', 'k-2_x'],
  )
})

test('a value that is no list of Ed25519 keys is refused in one sentence, which repeats none of it', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey
  const refused = [
    '',
    ',',
    'k1',
    PRIVATE,
    `:${PRIVATE}`,
    `k1:${PRIVATE},`,
    `k1:${PRIVATE.slice(0, 40)}`,
    `k1:${rsa.export({ format: 'der', type: 'pkcs8' }).toString('base64')}`,
    `${'k'.repeat(33)}:${PRIVATE}`,
    `k 1:${PRIVATE}`,
    `k1:${PRIVATE}!`,
    `x k1:${PRIVATE}`,
  ]
  for (const text of refused) {
    assert.throws(() => parseSigningKeys(text), {
      message: 'SPILLWAY_JWT_KEYS must be a comma-separated list of kid:base64, each an Ed25519 key in PKCS#8 DER',
    })
  }
  assert.throws(() => parseSigningKeys(`k1:${PRIVATE},k1:${other}`), {
    message: 'SPILLWAY_JWT_KEYS names a key id twice',
  })
  assert.equal(parseSigningKeys(`${'k'.repeat(32)}:${PRIVATE}`).signing.kid, 'k'.repeat(32))
})
