// How long a request is held at most, and when the holder of a ticket is told to come back.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { parseKeyring } from '@spillway/queue/queue-client'
import { Pace } from '@spillway/queue/wait/refusal-pace'
import { type Ticket, Tickets, told } from '@spillway/queue/wait/tickets'
import { test } from 'vitest'
import { parsePrefer, remainingWaitMs } from '../../src/operations/verdict-wait.ts'

test('the time to add a job is part of the wait; a wait that this used up is no wish for a ticket at once', () => {
  assert.equal(remainingWaitMs(8_000, 0), 8_000)
  assert.equal(remainingWaitMs(8_000, 2_500), 5_500)
  assert.equal(remainingWaitMs(8_000, 8_000), 1)
  assert.equal(remainingWaitMs(8_000, 20_000), 1)
  assert.equal(remainingWaitMs(0, 0), 0)
  assert.equal(remainingWaitMs(0, 2_500), 0)
})

test('the holder of a ticket comes back one hold before its answer is expected, after one second at least and five at most', () => {
  const after = (predictedMs: number, holdMs = 8_000) =>
    told({ ahead: 0, waitMs: predictedMs }, holdMs, 60_000).retryAfter
  assert.equal(after(10), 1)
  assert.equal(after(9_000), 1)
  assert.equal(after(9_001), 2)
  assert.equal(after(12_500), 5)
  assert.equal(after(50_000), 5)
  assert.equal(after(3_500, 0), 4)
  assert.equal(after(Number.POSITIVE_INFINITY), 2)
})

test('the ticket is valid for another second after its Retry-After', () => {
  const before = (ticketLeftMs: number) => told({ ahead: 0, waitMs: 50_000 }, 8_000, ticketLeftMs).retryAfter
  assert.equal(before(6_000), 5)
  assert.equal(before(5_999), 4)
  assert.equal(before(3_000), 2)
  assert.equal(before(1_500), 1)
})

// A client's preferences, by RFC 7240.

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

test('a hundred tickets are given at once; then half as many as requests are answered, each held no longer than any request', () => {
  let nowMs = 0
  const paceOf = (perSecond: number, longestDelayMs: number) => {
    const pace = new Pace({ perSecond: () => perSecond, longestDelayMs }, () => nowMs)
    return () => pace.delayMs()
  }
  const pace = paceOf(400, 8_000)
  const held = Array.from({ length: 2_000 }, pace)
  assert.equal(held.filter((ms) => ms === 0).length, 201)
  assert.deepEqual([held[201], held[401], held[1_999]], [5, 1_005, 8_000])
  nowMs += 60_000
  assert.equal(pace(), 0)
  const idle = paceOf(0, 8_000)
  assert.deepEqual(Array.from({ length: 103 }, idle).slice(-4), [0, 0, 10, 20])
  const never = Array.from({ length: 1_000 }, paceOf(0, 0))
  assert.equal(never.at(-1), 3_000, 'also where nobody is held')
})

// How long a ticket is good by the clock of the gateway that reads it.

const isObject = (contents: unknown): contents is object => typeof contents === 'object'
const tickets = new Tickets(parseKeyring(`k1:${randomBytes(32).toString('base64')}`), 'ticket', isObject)

/** A ticket whose deadline, by Redis's clock, and whose expiry, by a gateway's, are so far away. */
function ticketOf(deadlineInS: number, expiresInS: number): Ticket<object> {
  const inS = (seconds: number) => Date.now() + seconds * 1_000
  const job = { id: randomUUID(), name: 'verify', deadline: inS(deadlineInS) } as const
  return { contents: { kind: 'login' }, job, expiresAt: inS(expiresInS) }
}

test("a ticket is read until a minute and a half after its expiry by the gateway's clock, however far off Redis's is", () => {
  for (const deadlineInS of [-86_400, 0, 86_400]) {
    for (const expiresInS of [60, -1, -80]) {
      const ticket = ticketOf(deadlineInS, expiresInS)
      assert.deepEqual(tickets.read(tickets.issue(ticket)), ticket)
    }
    assert.throws(() => tickets.read(tickets.issue(ticketOf(deadlineInS, -91))), { code: 'ticket_expired' })
  }
})
