// Finished jobs of all workers, counted while workers come and go.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { entry } from '../../../test/capacity-entry.ts'
import { FinishedJobs } from '../../src/wait/load.ts'
import type { WorkerCapacity } from '../../src/wire/capacity.ts'

const alive = (counts: Record<string, number>): Map<string, WorkerCapacity> =>
  new Map(
    Object.entries(counts).map(([id, answered]) => [
      id,
      { ...entry, name: id, finished: { answered, expired: 1, failed: 1 } },
    ]),
  )

test('jobs from before a worker was first seen are not counted, those from then on are', () => {
  const finished = new FinishedJobs()
  finished.update(alive({ a: 1_000 }))
  assert.equal(finished.count(), 0)
  finished.update(alive({ a: 1_003, b: 500 }))
  finished.update(alive({ a: 1_005, b: 501 }))
  assert.equal(finished.count(), 6)
})

test('a worker that goes, comes back or starts anew takes nothing away', () => {
  const finished = new FinishedJobs()
  for (const counts of [{ a: 10 }, { a: 12 }, {}, { a: 20 }, { a: 3 }]) finished.update(alive({ ...counts }))
  assert.equal(finished.count(), 2)
})
