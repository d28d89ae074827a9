// One list of outcomes: what metrics count, the live page shows, and load tests report.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { countOutcomes, GatewayMetrics, noOutcomes, outcomeNames } from '../../src/plugins/metrics.ts'
import { outcomeOf } from '../../src/schemas/outcomes.ts'
import { problems } from '../../src/schemas/problem-codes.ts'

test('every problem has an outcome: what may succeed later was refused, what the service failed at has failed', () => {
  const refused = ['busy', 'too_many_requests', 'challenge_required']
  for (const [code, { status }] of Object.entries(problems)) {
    const expected = refused.includes(code) ? 'refused' : status < 500 ? 'rejected' : 'failed'
    assert.equal(outcomeOf(status, code), expected, code)
  }
  assert.deepEqual([outcomeOf(200), outcomeOf(202), outcomeOf(401)], ['answered', 'ticket', 'rejected'])
  // Another server tells no code.
  assert.deepEqual([outcomeOf(429), outcomeOf(503), outcomeOf(502)], ['refused', 'refused', 'failed'])
  assert.deepEqual(Object.keys(noOutcomes), [...outcomeNames])
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
