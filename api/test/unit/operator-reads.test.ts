// The order in which operators read, and what the audit records of it.
import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { withResolvers } from '@spillway/common/within'
import { test, vi } from 'vitest'
import { OperatorReads } from '../../src/ops/reads.ts'

const by = (name: string, clientGone = new AbortController().signal) => ({ operator: { name }, clientGone })

test('the reads of one operator run one after the other, also after a failure, and beside the reads of other operators', async () => {
  const reads = new OperatorReads({ record() {} })
  const running: string[] = []
  const first = withResolvers<void>()
  const read = (name: string, until?: Promise<void>) => async () => {
    running.push(name)
    await until
    return name
  }
  const failing = reads.next(by('anna'), read('first', first.promise))
  const second = reads.next(by('anna'), read('second'))
  assert.equal(await reads.next(by('berta'), read('other')), 'other')
  assert.deepEqual(running, ['first', 'other'])
  first.reject(new Error('a lost connection'))
  await assert.rejects(failing, /lost/)
  assert.equal(await second, 'second')
})

test('a read whose client has left does not run', async () => {
  const reads = new OperatorReads({ record() {} })
  const first = withResolvers<void>()
  const client = new AbortController()
  const one = reads.next(by('anna'), () => first.promise)
  const gone = reads.next(by('anna', client.signal), () => assert.fail('it was read'))
  await turn()
  client.abort()
  first.resolve()
  await one
  await assert.rejects(gone, { code: 'unavailable' })
})

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
  const reads = new OperatorReads({
    record: ({ operator, event, reason }) => void recorded.push([operator, event, reason]),
  })
  const read = (name: string, what: string) =>
    reads.record(
      { operator: { name, role: 'viewer' }, ip: '192.0.2.1', id: 'r' },
      { event: 'search_audit', reason: what },
    )
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
