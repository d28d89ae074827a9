// Operators: the lock-out of the ops port, the live page, the board's words, the outcomes.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { problems } from '../../src/http/problems.ts'
import { Lockout } from '../../src/ops/access.ts'
import { describeData, describeJob, describeMailData } from '../../src/ops/board.ts'
import { RecentRequests } from '../../src/ops/live.ts'
import { GatewayMetrics } from '../../src/ops/metrics.ts'
import { outcomeOf } from '../../src/schemas/outcomes.ts'

function scene() {
  let now = 0
  const lockout = new Lockout(() => now)
  return {
    lockout,
    pass: (ms: number) => {
      now += ms
    },
    fail: (address: string, times: number) => {
      for (let time = 0; time < times; time++) lockout.failed(address)
    },
  }
}

test('an address may fail nine times a minute, and the tenth locks it out until a minute after', () => {
  const { lockout, pass, fail } = scene()
  fail('a', 9)
  assert.equal(lockout.remainingMs('a'), 0)
  pass(30_000)
  fail('a', 1)
  assert.equal(lockout.remainingMs('a'), 30_000)
  pass(30_000)
  assert.equal(lockout.remainingMs('a'), 0)
})

test('guessing from many addresses locks out those that have not logged in before, and only those', () => {
  const { lockout, fail } = scene()
  lockout.succeeded('operator')
  for (let address = 0; address < 10; address++) fail(`guesser ${address}`, 6)
  assert.ok(lockout.remainingMs('newcomer') > 0)
  assert.equal(lockout.remainingMs('operator'), 0)
})

test('also an address that has logged in before is locked out when it guesses itself', () => {
  const { lockout, fail } = scene()
  lockout.succeeded('operator')
  fail('operator', 10)
  assert.ok(lockout.remainingMs('operator') > 0)
})

test('the hundred addresses that logged in last are known, and no others', () => {
  const { lockout, fail } = scene()
  lockout.succeeded('first')
  for (let address = 1; address < 100; address++) lockout.succeeded(`operator ${address}`)
  fail('guesser', 60)
  assert.equal(lockout.remainingMs('first'), 0)
  lockout.succeeded('first')
  lockout.succeeded('one more')
  assert.ok(lockout.remainingMs('operator 1') > 0)
  for (const address of ['first', 'operator 2', 'operator 99', 'one more']) {
    assert.equal(lockout.remainingMs(address), 0, address)
  }
})

// The figures of the live page.

test('requests are those of the last minute, by outcome and by reason', async (t) => {
  const metrics = new GatewayMetrics([])
  const recent = new RecentRequests(metrics)
  t.onTestFinished(() => recent.close())
  const login = { method: 'POST', route: '/v1/login' }
  metrics.requests.inc({ ...login, status: 503, outcome: 'busy' }, 5)
  metrics.requests.inc({ ...login, status: 500, outcome: 'internal_error' }, 2)
  metrics.requests.inc({ ...login, status: 401, outcome: 'invalid_credentials' })
  metrics.requests.inc({ method: 'GET', route: '/healthz', status: 200, outcome: 'ok' }, 9)
  metrics.refused.inc({ reason: 'gateway_overloaded' }, 3)
  const first = await recent.read()
  assert.deepEqual(first.outcomes, { answered: 0, ticket: 0, rejected: 1, refused: 5, failed: 2 })
  assert.deepEqual([first.reasons.gateway_overloaded, first.reasons.internal_error], [3, 2])
  for (let n = 0; n < 12; n++) {
    await recent.sample()
    metrics.requests.inc({ ...login, status: 202, outcome: 'ticket' })
  }
  const minute = { answered: 0, ticket: 12, rejected: 0, refused: 0, failed: 0 }
  assert.deepEqual((await recent.read()).outcomes, minute)
  await recent.sample()
  assert.deepEqual((await recent.read()).outcomes, { ...minute, ticket: 11 })
  assert.equal((await recent.read()).reasons.internal_error, 0)
})

// The board's view of a job: its times and its end, and nothing made up by others.

const added = { name: 'verify', timestamp: 1_000 }

test('made-up outcomes and codes are not repeated', () => {
  assert.equal(describeJob({ ...added, name: '<b>secret</b>' }), 'unknown job')
  assert.equal(describeJob({ ...added, name: 'secret', failedReason: 'secret' }), 'unknown job · failed')
  assert.equal(describeJob({ ...added, returnvalue: { outcome: 'secret', queueWaitMs: 1, serviceMs: 1 } }), 'verify')
  assert.deepEqual(describeData({ secret: 1 }), { malformed: true })
})

test('of what a job carries its times are shown, where they are any', () => {
  const data = {
    deadline: 1_700_000_060_000,
    enqueuedAt: 1_700_000_000_000,
    presentUntil: 1,
    replyTo: 'here',
    sealed: 'secret',
  }
  assert.deepEqual(describeData(data), { enqueuedAt: '2023-11-14T22:13:20.000Z', deadline: '2023-11-14T22:14:20.000Z' })
  assert.deepEqual(describeData({ ...data, enqueuedAt: -1, deadline: 1e17 }), {
    enqueuedAt: '1969-12-31T23:59:59.999Z',
    deadline: undefined,
  })
})

test('of what a mail carries nothing is shown but until when it may be sent', () => {
  assert.deepEqual(describeMailData({ sealed: 'secret', deadline: 1_700_000_060_000 }), {
    deadline: '2023-11-14T22:14:20.000Z',
  })
  assert.deepEqual(describeMailData({ sealed: 'secret', deadline: 'secret' }), { malformed: true })
})

// One list of outcomes: what the live page shows, and load tests report.

test('every problem has an outcome: what may succeed later was refused, what the service failed at has failed', () => {
  const refused = ['busy', 'too_many_requests']
  for (const [code, { status }] of Object.entries(problems)) {
    const expected = refused.includes(code) ? 'refused' : status < 500 ? 'rejected' : 'failed'
    assert.equal(outcomeOf(status, code), expected, code)
  }
  assert.deepEqual([outcomeOf(200), outcomeOf(202), outcomeOf(401)], ['answered', 'ticket', 'rejected'])
  // Another server tells no code.
  assert.deepEqual([outcomeOf(429), outcomeOf(503), outcomeOf(502)], ['refused', 'refused', 'failed'])
})
