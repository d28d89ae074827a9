// A client's preferences, by RFC 7240.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { parsePrefer } from '../../src/waiting/wait-times.ts'

const nothing = { waitMs: undefined, applied: undefined }
const wait = (seconds: number) => ({ waitMs: seconds * 1_000, applied: `wait=${seconds}` })
const async = { waitMs: 0, applied: 'respond-async' }

const preferences: [header: string | string[] | undefined, preference: ReturnType<typeof parsePrefer>][] = [
  [undefined, nothing],
  ['', nothing],
  ['wait=5', wait(5)],
  ['WAIT = 5', wait(5)],
  ['wait="5"', wait(5)],
  ['wait=0', wait(0)],
  ['wait=999999', wait(999_999)],
  ['wait=5; x=y', wait(5)],
  ['handling=strict,wait=5', wait(5)],
  ['wait=5, wait=9', wait(5)],
  ['wait=x, wait=9', wait(9)],
  ['respond-async', async],
  ['Respond-Async; x', async],
  ['respond-async, respond-async', async],
  ['respond-async, wait=5', { waitMs: 5_000, applied: 'respond-async, wait=5' }],
  ['respond-async, respond-async, wait=5', { waitMs: 5_000, applied: 'respond-async, wait=5' }],
  ['wait=5, respond-async', { waitMs: 5_000, applied: 'respond-async, wait=5' }],
  [['respond-async', 'wait=5'], { waitMs: 5_000, applied: 'respond-async, wait=5' }],
  ['wait', nothing],
  ['wait=', nothing],
  ['wait=-1', nothing],
  ['wait=1.5', nothing],
  ['wait=1000000', nothing],
  ['wait=5x', nothing],
  ['await=5', nothing],
  ['respond-asynchronously', nothing],
  ['return=minimal', nothing],
]

for (const [header, preference] of preferences) {
  test(`${JSON.stringify(header)} is understood`, () => assert.deepEqual(parsePrefer(header), preference))
}
