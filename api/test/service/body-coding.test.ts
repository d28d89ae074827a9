// Compressed bodies are refused on every port; an empty body counts as absent where no body is needed.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { test } from 'vitest'
import { exchange, expect, newCredentials } from '../client.ts'
import { heldAnyway, shareSystem } from '../system.ts'

const serviceKey = randomBytes(32).toString('base64url')
const system = await shareSystem()
const gateway = await system.gateway({ SERVICE_KEYS: `shop:${serviceKey}`, SERVICE_PORT: '0' }, heldAnyway)
const account = await gateway.api.newAccount()

/** A call of each port that takes a body, with a good body and the status that it gets */
const ports = [
  { url: gateway.url, path: '/v1/login', body: JSON.stringify(account), good: 200, further: '' },
  {
    url: gateway.serviceUrl ?? '',
    path: '/v1/passwords/hash',
    body: JSON.stringify({ password: newCredentials().password }),
    good: 200,
    further: `Authorization: Bearer ${serviceKey}\r\n`,
  },
  {
    url: gateway.opsUrl,
    path: '/queues/api/queues/passwords/add',
    body: JSON.stringify({ name: 'verify' }),
    // Refused, once it was read.
    good: 405,
    further: '',
  },
]

const statusesOf = (answers: string) => answers.match(/^HTTP\/1\.1 \d+/gm)?.map((line) => Number(line.slice(9)))
const chunked = (body: Uint8Array) => [`${body.length.toString(16)}\r\n`, body, '\r\n0\r\n\r\n']
const next = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

test('a transfer coding beside chunks is refused, and ends the connection', async () => {
  for (const { url, path, body, further } of ports) {
    for (const coding of ['gzip, chunked', 'chunked, chunked', 'gzip\r\nTransfer-Encoding: chunked']) {
      for (const bytes of [Buffer.from(body), gzipSync(body)]) {
        const head = `POST ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nContent-Type: application/json\r\n${further}Transfer-Encoding: ${coding}\r\n\r\n`
        const answers = await exchange(url, [head, ...chunked(bytes), next])
        assert.ok(['415', '400'].includes(String(statusesOf(answers))), `${path} ${coding}: ${answers}`)
      }
    }
  }
})

test('chunks alone are read, in any case; HTTP/1.0 has none', async () => {
  for (const { url, path, body, good, further } of ports) {
    for (const coding of ['chunked', 'Chunked', ' chunked ']) {
      const head = `POST ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nContent-Type: application/json\r\nConnection: close\r\n${further}Transfer-Encoding: ${coding}\r\n\r\n`
      assert.deepEqual(statusesOf(await exchange(url, [head, ...chunked(Buffer.from(body))])), [good], path)
    }
    const old = `POST ${path} HTTP/1.0\r\nHost: ${new URL(url).host}\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n${further}Transfer-Encoding: chunked\r\n\r\n`
    assert.deepEqual(statusesOf(await exchange(url, [old, ...chunked(Buffer.from(body)), next])), [400], path)
  }
})

test('a content coding is refused, whether the body has it or not; identity is none', async () => {
  for (const { url, path, body, good, further } of ports) {
    const send = (coding: string, bytes: Uint8Array) => {
      const head = `POST ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nContent-Type: application/json\r\nConnection: close\r\n${further}`
      return exchange(url, [`${head}Content-Encoding: ${coding}\r\nContent-Length: ${bytes.length}\r\n\r\n`, bytes])
    }
    for (const coding of ['GZIP', 'br', 'identity, gzip']) {
      for (const bytes of [Buffer.from(body), gzipSync(body)])
        assert.match(
          await send(coding, bytes),
          /^HTTP\/1\.1 415 [\s\S]*"code":"unsupported_media_type"/,
          `${path} ${coding}`,
        )
    }
    for (const coding of ['Identity', ''])
      assert.deepEqual(statusesOf(await send(coding, Buffer.from(body))), [good], `${path} ${coding}`)
  }
})

test('an empty body is none for a call that needs none, whatever its media type', async () => {
  const { accessToken } = expect(200, await gateway.api.login(account))
  const calls = [
    { method: 'DELETE', path: '/v1/me/sessions', status: 204 },
    { method: 'DELETE', path: '/v1/me/sessions/0b8e4bd0-6d0c-4b6c-8a3b-1f3a2b1c0d9e', status: 404 },
    { method: 'GET', path: '/v1/me', status: 200 },
  ]
  const types = ['application/json', 'text/plain;charset=UTF-8', 'application/x-www-form-urlencoded']
  for (const { method, path, status } of calls) {
    for (const type of types) {
      for (const framing of [
        '',
        'Content-Length: 0\r\n',
        ...(type.includes('json') ? ['Transfer-Encoding: chunked\r\n'] : []),
      ]) {
        const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${accessToken}\r\n`
        const end = framing.startsWith('Transfer') ? '0\r\n\r\n' : ''
        const answer = await exchange(gateway.url, [`${head}Content-Type: ${type}\r\n${framing}\r\n${end}`])
        assert.deepEqual(statusesOf(answer), [status], `${method} ${path} ${type} ${framing}`)
      }
    }
  }
})

test('an empty body stays a mistake for a call that needs one, and any other body is read as ever', async () => {
  const { accessToken } = expect(200, await gateway.api.login(account))
  const send = async (method: string, path: string, type: string, body: string) => {
    const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${accessToken}\r\n`
    const answer = await exchange(gateway.url, [
      `${head}Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    ])
    return statusesOf(answer)
  }
  assert.deepEqual(await send('POST', '/v1/login', 'application/json', ''), [400])
  assert.deepEqual(await send('POST', '/v1/login', 'text/plain', ''), [415])
  assert.deepEqual(await send('DELETE', '/v1/me/sessions', 'application/json', '{'), [400])
  assert.deepEqual(await send('DELETE', '/v1/me/sessions', 'text/plain', 'x'), [415])
  assert.deepEqual(await send('DELETE', '/v1/me/sessions', 'application/json', '{}'), [204])
})
