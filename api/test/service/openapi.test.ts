// The description of the API: valid, complete, true, and readable without any other host.
import assert from 'node:assert/strict'
import { Validator } from '@seriousme/openapi-schema-validator'
import { test } from 'vitest'
import { type Answer, newCredentials, respondAsync } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { shareSystem } from '../system.ts'

interface Operation {
  summary?: string
  security?: object[]
  responses: Record<string, { content?: object }>
}
type Description = {
  openapi: string
  paths: Record<string, Record<string, Operation>>
}

const mails = await startMailServer()
const system = await shareSystem()
const { api } = await system.gateway({ ...mails.env, ISSUER: 'https://login.example.test' })
const document: Description = JSON.parse(await (await fetch(`${api.url}/openapi.json`)).text())

test('the document is valid OpenAPI 3.1', async () => {
  assert.match(document.openapi, /^3\.1\./)
  const { valid, errors } = await new Validator().validate(structuredClone(document))
  assert.equal(valid, true, JSON.stringify(errors))
})

test('each call says what it is for, and which need an access token', () => {
  for (const [path, methods] of Object.entries(document.paths))
    for (const { summary, security } of Object.values(methods))
      assert.deepEqual([summary !== undefined, security !== undefined], [true, path.startsWith('/v1/me')], path)
})

test('answers have the statuses and the media types that the document gives them', async () => {
  const credentials = newCredentials()
  const seen = async (name: string, answer: Promise<Answer>) => {
    const { status, headers, body } = await answer
    const response = operationOf(name)?.responses[status]
    assert.ok(response, `${name} answers ${status}`)
    const [mediaType] = (headers.get('content-type') ?? '').split(';')
    assert.deepEqual(Object.keys(response.content ?? {}), mediaType === '' ? [] : [mediaType], `${name} ${status}`)
    return body
  }
  await seen('POST /v1/users', api.register(credentials))
  await seen('POST /v1/users', api.register(credentials))
  await seen('POST /v1/users', api.register({ ...credentials, password: '' }))
  await seen('POST /v1/login', api.login(newCredentials()))
  const { ticket } = await seen('POST /v1/login', api.login(credentials, respondAsync))
  await seen('POST /v1/tickets/redeem', api.redeem(ticket))
  await seen('POST /v1/tickets/redeem', api.redeem(ticket))
  await seen('POST /v1/tickets/redeem', api.redeem('nonsense'))
  const { accessToken, refreshToken } = await seen('POST /v1/login', api.login(credentials))
  await seen('GET /v1/me', api.me(accessToken))
  await seen('GET /v1/me', api.me('nonsense'))
  const sessions = await seen('GET /v1/me/sessions', api.call('GET', '/v1/me/sessions', { token: accessToken }))
  const [{ id = '' } = {}] = 'sessions' in sessions && Array.isArray(sessions.sessions) ? sessions.sessions : []
  for (const [other, path] of [
    ['DELETE /v1/me/sessions', '/v1/me/sessions'],
    ['DELETE /v1/me/sessions/{id}', '/v1/me/sessions/00000000-0000-0000-0000-000000000000'],
  ] as const)
    await seen(other, api.call('DELETE', path, { token: accessToken }))
  assert.notEqual(id, '')
  await seen('PUT /v1/me/password', api.changePassword(accessToken, credentials.password))
  await seen('PUT /v1/me/password', api.changePassword(accessToken, credentials.password))
  await seen('POST /v1/token/refresh', api.refresh(refreshToken))
  await seen('POST /v1/token/refresh', api.refresh(refreshToken))
  await seen('POST /v1/logout', api.logout(refreshToken))
  const documents = ['jwks.json', 'openid-configuration', 'oauth-authorization-server']
  for (const path of ['/healthz', '/readyz', '/v1/line', ...documents.map((name) => `/.well-known/${name}`)])
    await seen(`GET ${path}`, api.call('GET', path))
})

test('the page to read it on takes everything from this host', async () => {
  const pages = [`${api.url}/docs`, `${api.url}/docs/static/swagger-initializer.js`, `${api.url}/docs/static/index.css`]
  const linked: string[] = []
  for (const page of pages) {
    const response = await fetch(page)
    assert.equal(response.status, 200, page)
    const source = await response.text()
    for (const [, target = ''] of source.matchAll(/(?:src|href)="([^"]+)"|url\(([^)]+)\)/g)) {
      linked.push(new URL(target, response.url.endsWith('/docs') ? `${api.url}/` : response.url).href)
    }
    assert.doesNotMatch(source, /(?:src|href)="(?:https?:)?\/\//)
    assert.doesNotMatch(source, /fetch\(|@import|validatorUrl: (?!null)/)
  }
  assert.ok(linked.length >= 4)
  // The root leads to them.
  assert.match(await (await fetch(`${api.url}/`)).text(), /<title>Spillway API<\/title>/)
  const initializer = await (await fetch(`${api.url}/docs/static/swagger-initializer.js`)).text()
  const [, shownLogo = ''] = /data:image\/svg\+xml;base64,([\w+/=]+)/.exec(initializer) ?? []
  assert.match(Buffer.from(shownLogo, 'base64').toString(), />Spillway<\/text>/)
  for (const link of linked) {
    assert.equal(new URL(link).origin, new URL(api.url).origin)
    assert.equal((await fetch(link)).status, 200, link)
  }
  const shown = await (await fetch(`${api.url}/docs/json`)).text()
  assert.deepEqual(JSON.parse(shown), document)
})

function operationOf(name: string): Operation | undefined {
  const [method = '', path = ''] = name.split(' ')
  return document.paths[path]?.[method.toLowerCase()]
}
