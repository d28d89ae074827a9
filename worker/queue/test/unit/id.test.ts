// Ids that sort by time.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { firstIdAt, newId } from '../../src/wire/id.ts'

const VERSION_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('ids are UUIDs of version 7, each another one, in the order of time', () => {
  const ids = Array.from({ length: 1_000 }, (_, n) => newId(1_700_000_000_000 + n))
  for (const id of ids) assert.match(id, VERSION_7)
  assert.deepEqual(ids.toSorted(), ids)
  assert.equal(new Set(ids.map((id) => id.slice(14))).size, ids.length)
})

test('the first id of a time is before all of it, and after those before', () => {
  const first = firstIdAt(1_700_000_000_001)
  assert.match(first, VERSION_7)
  for (let n = 0; n < 100; n += 1) {
    assert.ok(newId(1_700_000_000_001) > first)
    assert.ok(newId(1_700_000_000_000) < first)
  }
  assert.equal(firstIdAt(Date.parse('0001-01-01')), firstIdAt(0))
})
