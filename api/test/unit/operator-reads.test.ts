// The reads of operators that the audit records.
import assert from 'node:assert/strict'
import { test, vi } from 'vitest'
import { OperatorReads } from '../../src/ops/reads.ts'

test('the same read is recorded once an hour, also if other reads came in between', (t) => {
  vi.useFakeTimers()
  t.onTestFinished(() => void vi.useRealTimers())
  const recorded: unknown[] = []
  const reads = new OperatorReads({ record: ({ event, by }) => void recorded.push([by?.operator, event, by?.reason]) })
  const read = (name: string, what: string) =>
    reads.record({ operator: { name, role: 'viewer' }, ip: '192.0.2.1', id: 'r' }, { event: 'search_audit', what })
  const both = () => {
    for (const what of ['event=login', 'all events', 'event=login']) read('anna', what)
  }
  both()
  read('berta', 'all events')
  vi.advanceTimersByTime(3_599_000)
  both()
  assert.equal(recorded.length, 3)
  vi.advanceTimersByTime(2_000)
  both()
  assert.equal(recorded.length, 5)
  assert.deepEqual(recorded[0], ['anna', 'search_audit', 'event=login'])
})
