// Operators: the lock-out of the ops port, the live page, the board's words, the outcomes.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { depth, workers } from '../../../worker/queue/test/load-scene.ts'
import { Lockout } from '../../src/operators/access.ts'
import { describeData, describeJob, describeMail, describeMailData } from '../../src/operators/board-words.ts'
import { Lately } from '../../src/operators/gateways.ts'
import { LiveHistory, Peak, percentiles, scaleOf } from '../../src/operators/live.ts'
import { countOutcomes, GatewayMetrics, noOutcomes } from '../../src/plugins/metrics.ts'
import { outcomeOf, requestOutcomes } from '../../src/schemas/outcomes.ts'
import { problems } from '../../src/schemas/problem-codes.ts'

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

test('one address that guesses locks out no other', () => {
  const { lockout, fail } = scene()
  fail('a', 10)
  assert.equal(lockout.remainingMs('b'), 0)
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

test('failures are forgotten after a minute, whoever made them', () => {
  const { lockout, pass, fail } = scene()
  for (let address = 0; address < 7; address++) fail(`guesser ${address}`, 9)
  assert.ok(lockout.remainingMs('newcomer') > 0)
  pass(90_000)
  assert.equal(lockout.remainingMs('newcomer'), 0)
  fail('guesser 0', 9)
  assert.equal(lockout.remainingMs('guesser 0'), 0)
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

// The figures of the live page: what happened lately, percentiles, and the depth of the queue.

const answered = (count: number) => ({ ...noOutcomes, answered: count })

test('what happened lately is all that happened within the first minute, and of later ones the last', () => {
  let nowMs = 5_000
  const lately = new Lately(noOutcomes, () => nowMs)
  assert.deepEqual(lately.since(answered(0)), { lately: answered(0), latelyMs: 1 })
  for (let second = 1; second <= 300; second++) {
    nowMs += 1_000
    const recent = Math.min(second, 60)
    assert.deepEqual(lately.since(answered(second * 3)), { lately: answered(recent * 3), latelyMs: recent * 1_000 })
    lately.sample(answered(second * 3))
  }
})

test('percentiles are values that occurred: the least that so large a share does not exceed', () => {
  const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1).toReversed()
  assert.deepEqual(percentiles(upTo(1)), { p50: 1, p95: 1 })
  assert.deepEqual(percentiles(upTo(2)), { p50: 1, p95: 2 })
  assert.deepEqual(percentiles(upTo(20)), { p50: 10, p95: 19 })
  assert.deepEqual(percentiles(upTo(100)), { p50: 50, p95: 95 })
})

test('the history begins with the jobs of both lanes, and is unknown where Redis did not answer', () => {
  const load = { ...workers, ...depth }
  for (const known of [true, false]) {
    const history = new LiveHistory({ load: () => ({ known, ...load }), finishedJobs: () => 0 })
    const { waiting, capacityPerSecond } = history.read()
    assert.deepEqual([waiting, capacityPerSecond], known ? [[23], [10]] : [[null], [null]])
    history.close()
  }
})

test('an early value that did not last flattens no chart; one that lasts, or is there now, is on the scale', () => {
  const calm = Array.from({ length: 20 }, () => 8)
  assert.equal(scaleOf([5_000, 5_000, ...calm]), 8)
  assert.equal(scaleOf([...calm, null, 5_000, ...calm]), 8)
  assert.equal(scaleOf([...calm, 40, 45, 50, ...calm]), 40)
  assert.equal(scaleOf([...calm, 5_000]), 5_000)
  assert.equal(scaleOf([]), 1)
})

test('a peak stays for a day after it was reached last, however low everything is meanwhile', () => {
  let now = 1_000
  const peak = new Peak(() => now)
  for (const value of [3, 80.04, 7]) {
    now += 1_000
    peak.sample(value)
  }
  assert.deepEqual(peak.read(), { value: 80, at: 3_000 })
  now += 24 * 3_600_000 - 1_000
  peak.sample(2)
  assert.deepEqual(peak.read(), { value: 80, at: 3_000 })
  now += 1
  peak.sample(5)
  assert.deepEqual(peak.read(), { value: 5, at: now })
})

// The board's view of a job: its times and its end, and nothing made up by others.

const added = { name: 'verify', timestamp: 1_000 }

test('a title tells how far a job has come, and how long it took', () => {
  assert.equal(describeJob(added), 'verify')
  assert.equal(describeJob({ ...added, processedOn: null }), 'verify')
  assert.equal(describeJob({ ...added, processedOn: 1_999 }), 'verify · waited 999 ms')
  assert.equal(describeJob({ ...added, processedOn: 2_000 }), 'verify · waited 1.0 s')
  assert.equal(describeJob({ ...added, processedOn: 2_000, failedReason: 'the job is malformed' }), 'verify · failed')
  const returnvalue = { outcome: 'answered', queueWaitMs: 1_234, serviceMs: 14.4 }
  assert.equal(describeJob({ ...added, returnvalue }), 'verify · answered: waited 1.2 s, hashed in 14 ms')
  const expired = { outcome: 'expired', queueWaitMs: 60_000, serviceMs: 0 }
  assert.equal(describeJob({ ...added, name: 'hash', returnvalue: expired }), 'hash · expired: waited 60.0 s')
})

test('clocks that disagree make no time negative', () => {
  assert.equal(describeJob({ ...added, processedOn: 900 }), 'verify · waited 0 ms')
})

test('made-up outcomes and codes are not repeated', () => {
  assert.equal(describeJob({ ...added, name: '<b>secret</b>' }), 'unknown job')
  assert.equal(describeJob({ ...added, name: 'secret', failedReason: 'secret' }), 'unknown job · failed')
  assert.equal(describeJob({ ...added, returnvalue: { outcome: 'secret', queueWaitMs: 1, serviceMs: 1 } }), 'verify')
  assert.deepEqual(describeData({ secret: 1 }), { malformed: true })
})

test('of what a job carries its times are shown, where they are any', () => {
  const data = { deadline: 1_700_000_060_000, enqueuedAt: 1_700_000_000_000, replyTo: 'here', sealed: 'secret' }
  assert.deepEqual(describeData(data), { enqueuedAt: '2023-11-14T22:13:20.000Z', deadline: '2023-11-14T22:14:20.000Z' })
  assert.deepEqual(describeData({ ...data, enqueuedAt: -1, deadline: 1e17 }), {
    enqueuedAt: '1969-12-31T23:59:59.999Z',
    deadline: undefined,
  })
})

test('a mail that waits has no more than its name, one that is to be tried again is shown as such, and so is one that was given up', () => {
  const mail = { name: 'mail', timestamp: 1_000 }
  assert.equal(describeMail(mail), 'mail')
  assert.equal(describeMail({ ...mail, finishedOn: 2_000 }), 'mail')
  assert.equal(describeMail({ ...mail, failedReason: 'the server is away' }), 'mail · to be tried again')
  assert.equal(describeMail({ ...mail, failedReason: 'refused', finishedOn: 2_000 }), 'mail · not sent')
})

test('of what a mail carries nothing is shown but until when it may be sent', () => {
  assert.deepEqual(describeMailData({ sealed: 'secret', deadline: 1_700_000_060_000 }), {
    deadline: '2023-11-14T22:14:20.000Z',
  })
  assert.deepEqual(describeMailData({ sealed: 'secret', deadline: 'secret' }), { malformed: true })
})

// One list of outcomes: what metrics count, the live page shows, and load tests report.

test('every problem has an outcome: what may succeed later was refused, what the service failed at has failed', () => {
  const refused = ['busy', 'too_many_requests', 'challenge_required']
  for (const [code, { status }] of Object.entries(problems)) {
    const expected = refused.includes(code) ? 'refused' : status < 500 ? 'rejected' : 'failed'
    assert.equal(outcomeOf(status, code), expected, code)
  }
  assert.deepEqual([outcomeOf(200), outcomeOf(202), outcomeOf(401)], ['answered', 'ticket', 'rejected'])
  // Another server tells no code.
  assert.deepEqual([outcomeOf(429), outcomeOf(503), outcomeOf(502)], ['refused', 'refused', 'failed'])
  assert.deepEqual(
    Object.keys(noOutcomes),
    requestOutcomes.map(({ outcome }) => outcome),
  )
})

test('refusals of an overloaded gateway are told apart from a full queue', async () => {
  const metrics = new GatewayMetrics([])
  const answers = { method: 'POST', route: '/v1/login' }
  metrics.requests.inc({ ...answers, status: 503, outcome: 'busy' }, 5)
  metrics.requests.inc({ ...answers, status: 503, outcome: 'unavailable' }, 2)
  metrics.requests.inc({ ...answers, status: 499, outcome: 'client_gone' })
  metrics.requests.inc({ ...answers, status: 401, outcome: 'invalid_credentials' })
  metrics.requests.inc({ method: 'GET', route: '/healthz', status: 200, outcome: 'ok' }, 9)
  metrics.refused.inc({ reason: 'gateway_overloaded' }, 3)
  assert.deepEqual(await countOutcomes(metrics), {
    ...noOutcomes,
    refused: 2,
    overloaded: 3,
    failed: 2,
    gone: 1,
    rejected: 1,
  })
})
