// One id for a request: in its answer, log lines, job, audit event and ticket, and in the redemption of that.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { asIs, assertProblem, expect, fetchPatiently, newCredentials, respondAsync } from '../client.ts'
import { openSystem, whileFrozen } from '../system.ts'

const OWN = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const system = await openSystem()
const worker = await system.worker()
const gateway = await system.gatewayProcess({
  ...{ TRUST_PROXY: '127.0.0.1', SERVICE_PORT: '0', CORS_ORIGINS: 'https://app.example.test' },
  SERVICE_KEYS: `shop:${randomBytes(32).toString('base64')}`,
})
const { api } = gateway
const untrusting = await system.gateway()
const from = (id: string) => ({ headers: { 'x-request-id': id } })

const auditOf = async (requestId: string) => {
  const find = () => system.database.auditEvent.findMany({ where: { requestId } })
  await until(async () => (await find()).length > 0)
  return (await find()).map(({ event, outcome, userId }) => ({ event, outcome, userId }))
}

test.each([
  ['a login', () => api.url, 'POST', '/v1/login', 422],
  ['an unknown path', () => api.url, 'GET', '/nothing', 404],
  ['a path that is no path', () => api.url, 'GET', '/v1/%zz', 400],
  ['a preflight', () => api.url, 'OPTIONS', '/v1/login', 204],
  ['the service API', () => gateway.serviceUrl ?? '', 'GET', '/v1/line', 401],
  ['metrics', () => gateway.opsUrl, 'GET', '/metrics', 200],
  ['the board', () => gateway.opsUrl, 'GET', '/queues/api/queues', 200],
] as const)('%s is answered with an id, which a problem repeats', async (_what, url, method, path, status) => {
  const headers = { origin: 'https://app.example.test', 'access-control-request-method': 'POST' }
  const ids = [from('of-the-proxy.1'), from('two,ids'), { headers: {} }]
  for (const [n, { headers: given }] of ids.entries()) {
    const answer = await fetchPatiently(url() + path, { method, headers: { ...headers, ...given } })
    assert.equal(answer.status, status)
    const id = answer.headers.get('x-request-id') ?? ''
    if (n === 0) assert.equal(id, 'of-the-proxy.1')
    else assert.match(id, OWN)
    const body = await answer.text()
    if (status >= 400) assert.equal(JSON.parse(body).requestId, id)
  }
})

test.each(['', 'a b', 'x'.repeat(65), 'é', '"'])('an id of a proxy in another form is replaced: %j', async (given) => {
  const answer = await fetch(`${api.url}/healthz`, { headers: { 'x-request-id': given } })
  assert.match(answer.headers.get('x-request-id') ?? '', OWN)
})

test('an id of anybody else is replaced', async () => {
  assert.match((await untrusting.api.call('GET', '/healthz', from('of-a-client'))).requestId, OWN)
})

test('log lines of gateway and worker and the audit have the id of a login', async () => {
  const account = await api.newAccount()
  const { requestId } = await api.login(account, from('login-1'))
  assert.equal(requestId, 'login-1')
  const line = await gateway.waitForLog(({ requestId, msg }) => requestId === 'login-1' && msg === 'request')
  assert.equal(line.status, 200)
  const job = await worker.waitForLog(({ requestId, msg }) => requestId === 'login-1' && msg === 'job answered')
  assert.equal(job.jobId, line.jobId)
  assert.deepEqual(
    (await auditOf('login-1')).map(({ event, outcome }) => [event, outcome]),
    [['login', 'ok']],
  )
  const failed = await api.login({ ...account, password: 'another one' }, from('login-2'))
  assertProblem(failed, 401, 'invalid_credentials')
  assert.deepEqual(
    (await auditOf('login-2')).map(({ outcome }) => outcome),
    ['wrong_password'],
  )
})

test('a ticket is redeemed under the id of the first request, at any gateway; the log has both', async () => {
  const account = await api.newAccount()
  const first = await api.login(
    { ...account, password: 'another one' },
    { headers: { ...respondAsync.headers, 'x-request-id': 'first' } },
  )
  const { ticket } = expect(202, first)
  const answer = await untrusting.api.redeem(ticket)
  assert.deepEqual([answer.status, answer.requestId], [401, 'first'])
  assert.deepEqual(
    (await auditOf('first')).map(({ event, outcome }) => [event, outcome]),
    [['login', 'wrong_password']],
  )
  const again = await api.redeem(ticket, from('second'))
  assert.deepEqual([again.status, again.requestId], [409, 'first'])
  const line = await gateway.waitForLog(({ requestId }) => requestId === 'second')
  assert.deepEqual([line.firstId, line.code], ['first', 'ticket_used'])
})

test('the job of a request is found while it waits, and the board shows the id; an expired ticket has an audit event', async () => {
  const account = newCredentials()
  const short = await system.gateway({ TICKET_TTL_MS: '3000', LOGIN_WAIT_MS: '0' })
  const { requestId } = await whileFrozen(worker, async () => {
    const first = await short.api.login(account, respondAsync)
    expect(202, first)
    const asked = await fetchPatiently(`${short.opsUrl}/v1/jobs/${first.requestId}`)
    const found: { paused: boolean; state: string } = JSON.parse(await asked.text())
    assert.equal(found.paused, false)
    assert.match(found.state, /^(waiting|active|in line)$/)
    const board = await (
      await fetchPatiently(
        `${short.opsUrl}/queues/api/queues?activeQueue=passwords&status=latest&page=1&jobsPerPage=10`,
      )
    ).text()
    assert.ok(board.includes(first.requestId))
    const end = () => short.api.redeem(first.body.ticket, asIs)
    await until(async () => (await end()).status === 410)
    assert.equal((await end()).body.code, 'ticket_expired')
    return first
  })
  assert.deepEqual((await auditOf(requestId))[0], { event: 'login', outcome: 'ticket_expired', userId: null })
  const missing = await fetchPatiently(`${short.opsUrl}/v1/jobs/${randomUUID()}`)
  assert.equal(missing.status, 404)
})
