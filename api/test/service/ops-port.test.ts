// The ops port: who is let in, what is refused, and what is shown there.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { expect, fetchPatiently, newCredentials, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

const OPERATOR = { OPS_USER: 'operator', OPS_PASSWORD: 'a password for operators' }

const system = await openSystem()

/** Asks as an operator with this password, or as nobody. */
async function ask(
  url: string,
  options: { password?: string; method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<{ status: number; headers: Headers; text: string }> {
  const { password, method = 'GET', headers = {}, body } = options
  const authorization =
    password === undefined ? {} : { authorization: `Basic ${btoa(`${OPERATOR.OPS_USER}:${password}`)}` }
  const response = await fetchPatiently(url, {
    method,
    headers: { ...authorization, ...headers },
    ...(body === undefined ? {} : { body }),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const right = { password: OPERATOR.OPS_PASSWORD }

test('pages ask for the password, metrics do not, and the public port has none of them', async () => {
  const { url, opsUrl } = await system.gateway(OPERATOR)
  for (const path of [
    '/',
    '/live.json',
    '/live.js',
    '/audit',
    '/audit.json',
    '/audit.ndjson',
    '/queues',
    '/queues/api/queues',
  ]) {
    const refused = await ask(opsUrl + path)
    assert.equal(refused.status, 401, path)
    assert.match(refused.headers.get('www-authenticate') ?? '', /^Basic realm="Spillway operators"/)
    await until(async () => (await ask(opsUrl + path, right)).status === 200, { what: path })
    // The root of the public port leads to its documentation.
    if (path !== '/') assert.equal((await ask(url + path, right)).status, 404, path)
  }
  for (const path of ['/metrics', '/healthz']) assert.equal((await ask(opsUrl + path)).status, 200)
  assert.equal((await ask(`${url}/metrics`)).status, 404)
})

test('pages may load nothing from elsewhere and be framed by nobody', async () => {
  const { opsUrl } = await system.gateway(OPERATOR)
  const { headers } = await ask(`${opsUrl}/`, right)
  const policy = headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'self'/)
  assert.match(policy, /frame-ancestors 'none'/)
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
})

test('ten wrong passwords lock an address out, whatever header names another one, and are counted', async () => {
  const { opsUrl } = await system.gateway(OPERATOR)
  for (let attempt = 0; attempt < 10; attempt++) {
    const headers = { 'x-forwarded-for': `192.0.2.${attempt}` }
    const path = attempt % 2 === 0 ? '/' : '/queues'
    assert.equal((await ask(opsUrl + path, { password: `guess ${attempt}`, headers })).status, 401)
  }
  const locked = await ask(`${opsUrl}/`, right)
  assert.equal(locked.status, 429)
  const retryAfterS = Number(locked.headers.get('retry-after'))
  assert.ok(retryAfterS > 0 && retryAfterS <= 60, `retry-after: ${retryAfterS}`)
  assert.match((await ask(`${opsUrl}/metrics`)).text, /^spillway_operator_login_failures_total 10$/m)
})

test('through a proxy of TRUST_PROXY the address that it names is locked out, and no other operator', async () => {
  const { opsUrl } = await system.gateway({ ...OPERATOR, TRUST_PROXY: '127.0.0.1' })
  const from = (address: string) => ({ headers: { 'x-forwarded-for': `203.0.113.9, ${address}` } })
  for (let attempt = 0; attempt < 10; attempt++)
    assert.equal(
      (await ask(`${opsUrl}/`, { password: `guess ${attempt}`, ...from(`192.0.2.1:${4_000 + attempt}`) })).status,
      401,
    )
  assert.equal((await ask(`${opsUrl}/`, { ...right, ...from('192.0.2.1') })).status, 429)
  assert.equal((await ask(`${opsUrl}/`, { ...right, ...from('192.0.2.2') })).status, 200)
})

test('guesses that come together are judged one after the other, and none after the lock-out, not even the right one', async () => {
  const { opsUrl } = await system.gateway(OPERATOR)
  const { host, hostname, port } = new URL(opsUrl)
  const guess = (password: string) => {
    const credentials = btoa(`${OPERATOR.OPS_USER}:${password}`)
    return `GET /live.json HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Basic ${credentials}\r\n`
  }
  // As many as a connection may have unanswered.
  const guesses = Array.from({ length: 15 }, (_, n) => `${guess(`guess ${n}`)}\r\n`)
  const socket = connect(Number(port), hostname)
  socket.write(`${guesses.join('')}${guess(OPERATOR.OPS_PASSWORD)}Connection: close\r\n\r\n`)
  const statuses = [...(await text(socket)).matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => Number(status))
  assert.deepEqual(statuses, [...Array<number>(10).fill(401), ...Array<number>(6).fill(429)])
  assert.match((await ask(`${opsUrl}/metrics`)).text, /^spillway_operator_login_failures_total 10$/m)
})

test('a password that is no UTF-8 is refused, whatever the environment made of the password of the operator', async () => {
  const { opsUrl } = await system.gateway({ ...OPERATOR, OPS_PASSWORD: `${OPERATOR.OPS_PASSWORD} \u{fffd}\u{fffd}` })
  const bytes = Buffer.concat([Buffer.from(`${OPERATOR.OPS_USER}:${OPERATOR.OPS_PASSWORD} `), Buffer.alloc(2, 0xff)])
  const headers = { authorization: `Basic ${bytes.toString('base64')}` }
  assert.equal((await ask(`${opsUrl}/live.json`, { headers })).status, 401)
})

test('the board shows the jobs that there are, whatever else someone has put into the queue', async () => {
  const { api, opsUrl } = await system.gateway(OPERATOR)
  const key = (name: string) => `${system.namespace.queuePrefix}:passwords:${name}`
  const { ticket } = expect(202, await api.register(newCredentials(), respondAsync))
  const forged = { name: 'verify', data: '{}', opts: '{}', timestamp: '1' }
  for (const field of ['data', 'opts', 'parent', 'returnvalue']) {
    await system.redis.hset(key(`forged-${field}`), { ...forged, [field]: '{' })
    await system.redis.zadd(key('failed'), 1, `forged-${field}`)
    await system.redis.rpush(key('wait'), `forged-${field}`)
  }
  await system.redis.set(key('forged-string'), 'x')
  await system.redis.zadd(key('failed'), 1, 'forged-string')
  await system.redis.rpush(key('wait'), 'forged-string', 'nothing')
  for (const status of ['latest', 'prioritized', 'waiting', 'failed']) {
    const shown = await ask(`${opsUrl}/queues/api/queues?activeQueue=passwords&status=${status}&page=1`, right)
    assert.equal(shown.status, 200, shown.text)
    if (status === 'latest' || status === 'prioritized')
      assert.match(shown.text, new RegExp(`"id":"${ticket.split('.')[0]}"`))
  }
  assert.equal((await ask(`${opsUrl}/queues/api/queues/passwords/forged-data`, right)).status, 404)
  await system.redis.del(key('wait'), key('failed'))
})

test('a URL with a control character is malformed, whoever sends it', async () => {
  const { opsUrl } = await system.gateway(OPERATOR)
  for (const path of ['/queues/api/queues/a%00b/pause', '/queues/api/queues/a%1Fb/pause', '/audit.json?q=%C2%80'])
    assert.equal((await ask(opsUrl + path, { ...right, method: 'PUT' })).status, 400, path)
})

test('a query that the board cannot decode is malformed, and no failure of Redis', async () => {
  const { opsUrl } = await system.gateway(OPERATOR)
  assert.equal((await ask(`${opsUrl}/queues/api/queues?activeQueue=%25`, right)).status, 400)
})

test('no HEAD reads an export for nobody, and a page of the board has at most a hundred jobs', async () => {
  const { opsUrl } = await system.gateway(OPERATOR)
  for (const path of ['/audit.ndjson', '/metrics'])
    assert.equal((await ask(opsUrl + path, { ...right, method: 'HEAD' })).status, 405, path)
  const key = (name: string) => `${system.namespace.queuePrefix}:passwords:${name}`
  for (let n = 0; n < 150; n += 1) {
    await system.redis.hset(key(`forged-${n}`), { name: 'verify', data: '{}', opts: '{}', timestamp: '1' })
    await system.redis.zadd(key('failed'), n, `forged-${n}`)
  }
  const page = 'activeQueue=passwords&status=failed&page=2&jobsPerPage=30000'
  const { queues } = JSON.parse((await ask(`${opsUrl}/queues/api/queues?${page}`, right)).text)
  assert.deepEqual([queues[0].jobs.length, queues[0].pagination.pageCount], [50, 2])
  await system.redis.del(key('failed'))
})

test('operators change things, and pages of other sites do not', async () => {
  const { opsUrl } = await system.gateway(OPERATOR)
  const pause = `${opsUrl}/queues/api/queues/passwords/pause`
  const strangers = [
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    // Another port or name of the site: not ours, though the browser sends it our cookies.
    { 'sec-fetch-site': 'same-site', origin: opsUrl },
  ]
  for (const headers of strangers) {
    const refused = await ask(pause, { ...right, method: 'PUT', headers })
    assert.deepEqual([refused.status, JSON.parse(refused.text).code], [403, 'other_site'])
  }
  assert.match((await ask(`${opsUrl}/metrics`)).text, /^spillway_queue_paused\{queue="passwords"\} 0$/m)
  assert.equal((await ask(pause, { ...right, method: 'PUT', headers: { origin: opsUrl } })).status, 200)
  await until(async () => /^spillway_queue_paused\{queue="passwords"\} 1$/m.test((await ask(`${opsUrl}/metrics`)).text))
  assert.equal((await ask(`${opsUrl}/queues/api/queues/passwords/resume`, { ...right, method: 'PUT' })).status, 200)
})

test('without a password only requests that call the port by a loopback name are answered', async () => {
  const { opsUrl } = await system.gateway()
  assert.equal((await ask(`${opsUrl}/live.json`)).status, 200)
  const { port } = new URL(opsUrl)
  const strangers = ['rebound.example', 'localhost.rebound.example']
  for (const name of strangers) assert.equal(await statusUnderName(port, `${name}:${port}`), 403, name)
  for (const name of ['localhost', '127.0.0.1']) assert.equal(await statusUnderName(port, `${name}:${port}`), 200, name)
})

/** `fetch` would set the header itself. */
async function statusUnderName(port: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/live.json', headers: { host } }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })
}
