// Discovery, as verifiers that know the issuer alone ask for it.
import assert from 'node:assert/strict'
import type { LogLine } from '@spillway/infra/processes/node-process'
import { newSigningKey } from '@spillway/infra/start/secrets'
import { decodeJwt } from 'jose'
import { test } from 'vitest'
import { assertProblem } from '../client.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const keys = [newSigningKey('ec', 'ES256'), newSigningKey('ed', 'EdDSA'), newSigningKey('rsa', 'RS256')].join()
const issuer = 'https://example.test/login/eu'
const settings = { ISSUER: issuer, TOKEN_CLAIMS: 'email' }
const { api } = await system.gateway({ ...settings, SPILLWAY_JWT_KEYS: keys })

interface Metadata {
  issuer: string
  jwks_uri: string
  id_token_signing_alg_values_supported: string[]
  claims_supported: string[]
}
async function metadataAt(path: string, at = api.url): Promise<Metadata> {
  const response = await fetch(at + path)
  assert.equal(response.status, 200, path)
  return JSON.parse(await response.text())
}

test('the documents name issuer, keys, algorithms and claims, and nothing else', async () => {
  const metadata = await metadataAt('/.well-known/openid-configuration')
  const { claims_supported: claims, ...rest } = metadata
  assert.deepEqual(rest, {
    issuer,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    id_token_signing_alg_values_supported: ['ES256', 'EdDSA', 'RS256'],
  })
  assert.deepEqual(await metadataAt('/.well-known/oauth-authorization-server'), metadata)
  const token = decodeJwt((await api.signedIn()).accessToken)
  assert.equal(token.iss, issuer)
  assert.deepEqual(Object.keys(token).sort(), claims.sort())
})

test('an issuer with a path is found as either standard builds the URL, whether a proxy strips the path or not', async () => {
  const { pathname: path } = new URL(issuer)
  const known = ['openid-configuration', 'oauth-authorization-server'].map((name) => `/.well-known/${name}`)
  for (const at of known.flatMap((name) => [name + path, path + name]))
    assert.equal((await metadataAt(at)).issuer, issuer)
  const keySets = ['', path].map(async (at) => (await fetch(`${api.url}${at}/.well-known/jwks.json`)).text())
  const [stripped, whole] = await Promise.all(keySets)
  assert.equal(stripped, whole)
})

test('an issuer without a path has its documents at the root alone', async () => {
  const { api } = await system.gateway({ ISSUER: 'http://localhost:3000' })
  assert.equal((await metadataAt('/.well-known/openid-configuration', api.url)).issuer, 'http://localhost:3000')
  assertProblem(await api.call('GET', '/login/.well-known/openid-configuration'), 404, 'not_found')
})

test('a name is no issuer that could be discovered: there is no document, and the log says so', async () => {
  const gateway = await system.gatewayProcess({ ISSUER: 'shop' })
  for (const name of ['openid-configuration', 'oauth-authorization-server'])
    assertProblem(await gateway.api.call('GET', `/.well-known/${name}`), 404, 'not_found')
  assert.equal((await fetch(`${gateway.url}/.well-known/jwks.json`)).status, 200)
  const speaksOfIt = ({ msg }: LogLine) => String(msg).includes('ISSUER')
  await gateway.waitForLog(speaksOfIt)
  const said = gateway.logs.filter(speaksOfIt)
  const messages = said.map(({ msg }) => msg)
  assert.deepEqual(messages, ['there is no discovery of shop: ISSUER is no URL'])
})

test('a cache may keep each document for five minutes, and asks whether it changed', async () => {
  const { url: rotated } = await system.gateway({ ...settings, SPILLWAY_JWT_KEYS: `${newSigningKey()},${keys}` })
  for (const path of ['/.well-known/jwks.json', '/.well-known/openid-configuration']) {
    const first = await fetch(api.url + path)
    const etag = first.headers.get('etag') ?? ''
    assert.match(etag, /^"[\w-]{43}"$/)
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const answer = await fetch(api.url + path, { headers: { 'if-none-match': known } })
      assert.deepEqual([answer.status, await answer.text(), answer.headers.get('etag')], [304, '', etag])
      assert.equal(answer.headers.get('cache-control'), 'public, max-age=300')
    }
    assert.equal((await fetch(api.url + path, { headers: { 'if-none-match': '"other"' } })).status, 200)
    const isKeys = path.endsWith('jwks.json')
    const after = await fetch(rotated + path, { headers: { 'if-none-match': etag } })
    assert.equal(after.status, isKeys ? 200 : 304, 'a new key of a known type changes the keys alone')
  }
})
