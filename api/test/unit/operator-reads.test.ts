// Exports of operators, and their reads that the audit records.
import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test, vi } from 'vitest'
import { OperatorReads } from '../../src/ops/reads.ts'

test('pages of exports are read one after the other, also after a failure, whoever exports', async () => {
  const reads = new OperatorReads({ record() {} })
  let [running, most] = [0, 0]
  const read = async ({ before, limit }: { before?: string | undefined; limit: number }) => {
    most = Math.max(most, ++running)
    await turn()
    running -= 1
    return Array.from({ length: before === undefined ? limit : 1 }, () => ({ id: 'x' }))
  }
  const pagesOf = async (from: typeof read) => {
    const pages: number[] = []
    for await (const rows of reads.pages(from)) pages.push(rows.length)
    return pages
  }
  const failing = pagesOf(() => Promise.reject(new Error('a lost connection')))
  const exported = [read, read].map(pagesOf)
  await assert.rejects(failing, /lost/)
  assert.deepEqual(await Promise.all(exported), [
    [100, 1],
    [100, 1],
  ])
  assert.equal(most, 1)
})

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
