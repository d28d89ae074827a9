// The findings of the live page: what fails, where, why, and the runbook of each.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { QueueReport } from '@spillway/queue/jobs/report'
import { test } from 'vitest'
import { causes, findingsOf, type GatewayState } from '../../src/operators/findings.ts'

const worker: QueueReport['workers'][number] = {
  ...{ id: 'worker', name: 'host:1', at: 0, keys: '', fallback: false, slots: 1, busy: 0, asking: 0 },
  ...{ serviceMs: 1, lineMs: 1, latencyMs: 1, unitCosts: { argon2Ms: 1, bcryptMs: 1, foretoldMs: 1 } },
  finished: { answered: 0, expired: 0, failed: 0 },
}
const idle: QueueReport = {
  jobs: { waiting: 0, deferred: 0, active: 0, absent: 0, completed: 0, failed: 0 },
  ...{ abandoned: 0, paused: false, oldestMs: { waiting: 0, deferred: 0 } },
  workers: [worker],
  ...{ recent: [], failedLately: { count: 0, reason: '' } },
}
const quiet: Parameters<typeof findingsOf>[0] = {
  report: idle,
  redis: [{ address: 'redis:6379', isUsable: true }],
  ...{ gateways: [], ticketLifeMs: 60_000 },
}
const gateway = (name: string, reason: string, count = 1, delayMs = 0): GatewayState => ({
  ...{ name, delayMs, reasons: [{ reason, count }] },
})
const fallback = { ...worker, fallback: true }
const late = { outcome: 'expired', queueWaitMs: 60_000, serviceMs: 0 } as const

const sections = readFileSync(new URL('../../../infra/grafana/ALERTS.md', import.meta.url), 'utf8')
const hasRunbook = (name: string) => assert.match(sections, new RegExp(`^### ${name}$`, 'm'))

test('a quiet service has no findings, and neither have wrong passwords', () => {
  assert.deepEqual(findingsOf(quiet), [])
  const gateways = ['wrong_password', 'unknown_account', 'of_another_version'].map((reason) => gateway('one', reason))
  assert.deepEqual(findingsOf({ ...quiet, gateways }), [])
})

const report = (changed: Partial<QueueReport>) => ({ report: { ...idle, ...changed } })
test.each<[title: string, runbook: string, state: Partial<typeof quiet>, detail: RegExp]>([
  ['Redis does not answer', 'SpillwayRedisUnreachable', { report: undefined }, /told to come back/],
  [
    ...(['A Redis server cannot be used', 'SpillwayOneRedisLost'] as const),
    { redis: [...quiet.redis, { address: 'second:6379', isUsable: false }] },
    /^second:6379$/,
  ],
  ['The queue is paused', 'SpillwayQueuePaused', report({ paused: true }), /until it is resumed/],
  ['No worker is alive', 'SpillwayNoWorker', report({ workers: [] }), /tickets/],
  ['No worker is alive', 'SpillwayNoWorker', report({ workers: [fallback] }), /Gateways hash/],
  [
    ...(['Tickets are about to expire', 'SpillwayOldestJob'] as const),
    report({ oldestMs: { waiting: 0, deferred: 31_000 } }),
    /31\.0 s; tickets expire after 60\.0 s/,
  ],
  ['Jobs reach workers too late', 'SpillwayJobsExpire', report({ recent: [late] }), /^1 job of the last 1/],
  [
    ...(['Jobs fail at workers', 'SpillwaySealFailures'] as const),
    report({ failedLately: { count: 2, reason: 'the sealed request does not open' } }),
    /^2 jobs in the last minute, the latest because the sealed request does not open$/,
  ],
  [
    ...(['Jobs fail at workers', 'SpillwayHashingFails'] as const),
    report({ failedLately: { count: 1, reason: '' } }),
    /unknown error/,
  ],
  [
    ...(['A gateway is overloaded', 'SpillwayGatewayOverloaded'] as const),
    { gateways: [gateway('one', 'gateway_overloaded', 1_200, 340), gateway('two', 'wrong_password')] },
    /^1,200 requests in the last minute, at one, where requests wait 0\.3 s$/,
  ],
  [
    ...(['PostgreSQL does not answer', 'SpillwayLoginErrorBudgetBurnsFast'] as const),
    { gateways: [gateway('one', 'database', 2), gateway('two', 'database')] },
    /^3 requests in the last minute, at one and two$/,
  ],
])('%s: %s', (title, runbook, state, detail) => {
  const [finding, ...others] = findingsOf({ ...quiet, ...state })
  assert.deepEqual([finding?.title, finding?.runbook, others], [title, runbook, []])
  assert.match(finding?.detail ?? '', detail)
  hasRunbook(runbook)
})

test('every reason of the table has a runbook, the reasons of one cause are one finding, and the worst comes first', () => {
  for (const { runbook } of Object.values(causes)) hasRunbook(runbook)
  const gateways = ['predicted_wait', 'too_many_waiting', 'internal_error'].map((reason) => gateway('one', reason))
  const found = findingsOf({ ...quiet, gateways }).map(({ level, title }) => [level, title])
  assert.deepEqual(found, [
    ['bad', 'Internal errors'],
    ['warn', 'The queue is full'],
  ])
})
