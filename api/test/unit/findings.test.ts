// The findings of the live page: what fails, where, why, and the runbook of each.
import assert from 'node:assert/strict'
import type { QueueReport } from '@spillway/queue/report'
import { test } from 'vitest'
import { findingsOf } from '../../src/ops/findings.ts'

const worker: QueueReport['workers'][number] = {
  ...{ id: 'worker', name: 'host:1', at: 0, keys: [], slots: 1, busy: 0, asking: 0 },
  ...{ serviceMs: 1, lineMs: 1, latencyMs: 1 },
  finished: { answered: 0, skipped: 0, failed: 0 },
}
const idle: QueueReport = {
  jobs: { open: 0, ticketed: 0, active: 0, completed: 0, failed: 0 },
  paused: false,
  oldestMs: { open: 0, ticketed: 0 },
  workers: [worker],
  failedLately: { count: 0, reason: '' },
}
const quiet: Parameters<typeof findingsOf>[0] = {
  report: idle,
  mails: undefined,
  reasons: {},
  delayMs: 0,
  ticketLifeMs: 60_000,
}

test('a quiet service has no findings, and neither have wrong passwords', () => {
  assert.deepEqual(findingsOf(quiet), [])
  assert.deepEqual(findingsOf({ ...quiet, reasons: { wrong_password: 1, unknown_account: 1 }, delayMs: 500 }), [])
})

const report = (changed: Partial<QueueReport>) => ({ report: { ...idle, ...changed } })
test.each<[title: string, runbook: string, state: Partial<typeof quiet>, detail: RegExp]>([
  ['Redis does not answer', 'SpillwayRedisUnreachable', { report: undefined }, /told to come back/],
  ['The queue is paused', 'SpillwayQueuePaused', report({ paused: true }), /until it is resumed/],
  [
    ...(['The queue of mails is paused', 'SpillwayQueuePaused'] as const),
    { mails: { isPaused: true, lastReason: undefined } },
    /until it is resumed/,
  ],
  [
    ...(['Mails are not sent, and tried again', 'SpillwayMailsNotSent'] as const),
    { mails: { isPaused: false, lastReason: 'the mail server: nothing listens' } },
    /^the mail server: nothing listens$/,
  ],
  ['No worker is alive', 'SpillwayNoWorker', report({ workers: [] }), /tickets/],
  [
    ...(['Tickets are about to expire', 'SpillwayOldestJob'] as const),
    report({ oldestMs: { open: 0, ticketed: 31_000 } }),
    /31\.0 s; tickets expire after 60\.0 s/,
  ],
  [
    ...(['Jobs fail at workers', 'SpillwaySealFailures'] as const),
    report({ failedLately: { count: 2, reason: 'the sealed request does not open' } }),
    /^2 jobs in the last minute, the latest because the sealed request does not open$/,
  ],
  [
    ...(['Jobs fail at workers', 'SpillwaySealFailures'] as const),
    report({ failedLately: { count: 1, reason: 'the job is malformed' } }),
    /^1 job /,
  ],
  [
    ...(['Jobs fail at workers', 'SpillwayHashingFails'] as const),
    report({ failedLately: { count: 1, reason: '' } }),
    /unknown error/,
  ],
  [
    ...(['This gateway is overloaded', 'SpillwayGatewayOverloaded'] as const),
    { reasons: { gateway_overloaded: 1_200, wrong_password: 1 }, delayMs: 340 },
    /^1,200 requests to this gateway in the last minute, and requests wait 0\.3 s$/,
  ],
  [
    ...(['PostgreSQL does not answer', 'SpillwayLoginErrorBudgetBurnsFast'] as const),
    { reasons: { database: 1 } },
    /^1 request to this gateway in the last minute$/,
  ],
])('%s: %s', (title, runbook, state, detail) => {
  const [finding, ...others] = findingsOf({ ...quiet, ...state })
  assert.deepEqual([finding?.title, finding?.runbook, others], [title, runbook, []])
  assert.match(finding?.detail ?? '', detail)
})

test('the reasons of one cause are one finding, and the worst comes first', () => {
  const reasons = { predicted_wait: 1, too_many_waiting: 1, internal_error: 1 }
  const found = findingsOf({ ...quiet, reasons }).map(({ level, title }) => [level, title])
  assert.deepEqual(found, [
    ['bad', 'Internal errors'],
    ['warn', 'The queue is full'],
  ])
})
