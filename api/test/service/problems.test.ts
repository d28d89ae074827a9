// Requests that are wrong before anything is asked: each gets a problem that says what.
import assert from 'node:assert/strict'
import { readMetric } from '@spillway/infra/harness/api-client'
import { test } from 'vitest'
import { type Answer, assertProblem, exchange } from '../client.ts'
import { openSystem } from '../system.ts'

const system = await openSystem()
const { api, opsUrl } = await system.gateway()
const ports = [
  [api.url, '/healthz'],
  [opsUrl, '/metrics'],
] as const
const json = { 'content-type': 'application/json' }

test('an unknown path is not found, whatever the method', async () => {
  const calls: [string, string][] = [
    ['GET', '/nothing'],
    ['POST', '/v1/login/'],
    ['POST', '/v1/unknown?email=someone@example.test'],
    ['GET', '/metrics'],
    ['GET', '/docs/static/missing'],
  ]
  for (const [method, path] of calls) assertProblem(await api.call(method, path), 404, 'not_found')
})

test('a known path with another method is answered with the methods that it has', async () => {
  const calls: [string, string, string][] = [
    ['GET', '/v1/login', 'POST'],
    ['DELETE', '/v1/users?email=someone@example.test', 'POST'],
    ['PATCH', '/v1/me', 'GET, HEAD'],
    ['OPTIONS', '/v1/login', 'POST'],
    ['PUT', '/v1/me/sessions/0b8e4bd0-6d0c-4b6c-8a3b-1f3a2b1c0d9e', 'DELETE'],
  ]
  for (const [method, path, allowed] of calls) {
    const answer = await api.call(method, path)
    assertProblem(answer, 405, 'method_not_allowed')
    assert.equal(answer.headers.get('allow'), allowed, path)
  }
})

test('a body that cannot be read is told apart from one that is wrong', async () => {
  const bodies: [string, Record<string, string>, number, string][] = [
    ['{"email":', json, 400, 'malformed_request'],
    ['', json, 400, 'malformed_request'],
    ['email=a&password=b', { 'content-type': 'application/x-www-form-urlencoded' }, 415, 'unsupported_media_type'],
    ['{}', { 'content-type': 'nonsense' }, 415, 'unsupported_media_type'],
    [JSON.stringify({ email: 'x'.repeat(20_000) }), json, 413, 'body_too_large'],
    ['[]', json, 422, 'invalid_request'],
  ]
  for (const [body, headers, status, code] of bodies) {
    assertProblem(await send('/v1/login', body, headers), status, code)
  }
  assertProblem(await api.call('POST', '/v1/login'), 422, 'invalid_request')
})

test('every wrong field is named, with what is wrong about it, and never with its value', async () => {
  const secret = 'do not repeat me'
  const answer = await api.call('POST', '/v1/users', {
    body: { email: secret, password: 7, extra: secret, [secret]: 1 },
  })
  assertProblem(answer, 422, 'invalid_request')
  assert.deepEqual(answer.body.errors.map(({ field }) => field).sort(), [secret, 'email', 'extra', 'password'].sort())
  for (const { message } of answer.body.errors) assert.ok(message.length > 0 && !message.includes(secret))

  const missing = await api.call('POST', '/v1/login', { body: {} })
  assert.deepEqual(missing.body.errors, [
    { field: 'email', message: 'is required' },
    { field: 'password', message: 'is required' },
  ])
  for (const [path, field] of [
    ['/v1/token/refresh', 'refreshToken'],
    ['/v1/logout', 'refreshToken'],
    ['/v1/tickets/redeem', 'ticket'],
  ] as const) {
    for (const body of [
      {},
      { [field]: null },
      { [field]: 1 },
      { [field]: [] },
      { [field]: 'x'.repeat(field === 'ticket' ? 30_000 : 5_000) },
    ]) {
      const wrong = await api.call('POST', path, { body })
      assertProblem(wrong, 422, 'invalid_request')
      const fields = wrong.body.errors.map((error) => error.field)
      assert.deepEqual(fields, [field])
    }
  }
})

test('an answer is small, however much is wrong with a request, and shows nothing that cannot be seen', async () => {
  const names: Record<string, (n: number) => string> = {
    'names of control characters': (n) => `${'\0'.repeat(200)}${n}`,
    'names that are cut within a character': (n) => `x${'\u{1f511}'.repeat(200)}${n}`,
    'halves of surrogate pairs': (n) => `${'\u{d800}'.repeat(200)}${n}`,
    'names that turn the direction': (n) => `${'\u{202e}'.repeat(200)}${n}`,
  }
  for (const [what, nameOf] of Object.entries(names)) {
    const members = Array.from({ length: 15_000 }, (_, n) => [nameOf(n), 1] as const)
    let body = ''
    for (let count = 1; count <= members.length; count *= 2) {
      const next = JSON.stringify(Object.fromEntries(members.slice(0, count)))
      if (Buffer.byteLength(next) > 16_384) break
      body = next
    }
    assert.ok(Buffer.byteLength(body) > 7_000, what)
    for (const path of ['/v1/login', '/v1/tickets/redeem']) {
      const response = await fetch(api.url + path, { method: 'POST', headers: json, body })
      const text = await response.text()
      assertProblem(
        { status: response.status, headers: response.headers, body: JSON.parse(text) },
        422,
        'invalid_request',
      )
      assert.ok(Buffer.byteLength(text) <= 2_048, `${what}: ${Buffer.byteLength(text)} bytes`)
      assert.doesNotMatch(text, /\\u|\p{C}/u, what)
    }
  }
})

test('bytes that are no HTTP, a URL that cannot be read, or too many headers, are a problem', async () => {
  for (const request of [
    'nonsense\r\n\r\n',
    'GET /v1/%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n',
    'POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
  ]) {
    for (const port of [api.url, opsUrl]) {
      const answer = await raw(request, port)
      assert.ok(answer.status === 400 || answer.status === 431, `${answer.status}`)
      assertProblem(answer, answer.status, answer.status === 400 ? 'malformed_request' : 'headers_too_large')
    }
  }
})

test('what cannot be read is logged and counted as any other request, and not repeated', async () => {
  const gateway = await system.gatewayProcess()
  const sent = 'not-to-be-repeated'
  const unreadable: [string, string, number, string][] = [
    [`PUT /v1/%zz${sent} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, 'PUT', 400, 'malformed_request'],
    [`${sent}\r\n\r\n`, 'none', 400, 'malformed_request'],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${sent.repeat(1_000)}\r\n\r\n`, 'none', 431, 'headers_too_large'],
  ]
  for (const [request, method, status, code] of unreadable) {
    assertProblem(await raw(request, gateway.url), status, code)
    await gateway.waitForLog((line) => line.msg === 'request' && line.method === method && line.code === code)
    const series = `{method="${method}",route="none",status="${status}",outcome="${code}"}`
    assert.equal(await readMetric(gateway.opsUrl, 'spillway_http_requests_total', series), 1)
  }
  await gateway.api.call('GET', '/docs/static/%00')
  assertProblem(await gateway.api.redeem('made.up'), 400, 'invalid_ticket')
  await gateway.waitForLog(({ code }) => code === 'invalid_ticket')
  assert.ok(!gateway.logs.some((line) => JSON.stringify(line).includes(sent)))
  // A client's mistake is no error.
  assert.ok(!gateway.logs.some(({ level }) => level === 'error'))
})

test("a call of an operator is logged with the operator's name, without what was asked for", async () => {
  const gateway = await system.gatewayProcess()
  await fetch(`${gateway.opsUrl}/v1/accounts/00000000-0000-4000-8000-000000000000`)
  const line = await gateway.waitForLog(({ msg }) => msg === 'operator request')
  const { method, route, operator, status, code } = line
  assert.deepEqual(
    { method, route, operator, status, code },
    {
      ...{ method: 'GET', route: '/v1/accounts/:id', operator: 'operator' },
      ...{ status: 404, code: 'account_not_found' },
    },
  )
  assert.ok(!JSON.stringify(line).includes('0000-4000'))
})

test('a request without Host, or with two, is a problem as well, but for HTTP/1.0, which needs none', async () => {
  for (const [port, path] of ports) {
    for (const lines of ['', 'Host: x\r\nHost: x\r\n', 'Host: x\r\nHOST: y\r\n']) {
      const request = `GET ${path} HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`
      assertProblem(await raw(request, port), 400, 'malformed_request')
    }
    assert.match(await exchange(port, `GET ${path} HTTP/1.0\r\n\r\n`), /^HTTP\/1\.1 200 /)
  }
})

test('a body whose length is given in two ways ends the connection, and what follows it is not answered', async () => {
  for (const encoding of ['', ' ', '\t']) {
    const answers = await exchange(
      api.url,
      `POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding:${encoding}\r\nContent-Length: 5\r\n\r\n` +
        '0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
    )
    assert.deepEqual(answers.match(/^HTTP\/1\.1 \d+/gm), ['HTTP/1.1 400'])
  }
})

async function send(path: string, body: string, headers: Record<string, string>): Promise<Answer> {
  const response = await fetch(api.url + path, { method: 'POST', headers, body })
  return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) }
}

async function raw(request: string, to = api.url): Promise<Answer> {
  const received = await exchange(to, request)
  const [head = '', body = ''] = received.split('\r\n\r\n')
  const [statusLine = '', ...fields] = head.split('\r\n')
  const headers = new Headers(
    fields.map((field): [string, string] => {
      const colon = field.indexOf(':')
      return [field.slice(0, colon), field.slice(colon + 1).trim()]
    }),
  )
  return { status: Number(statusLine.split(' ')[1]), headers, body: JSON.parse(body) }
}
