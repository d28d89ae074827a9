// How long a request is held at most, and when the holder of a ticket is told to come back.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { parseKeyring } from '@spillway/queue/client'
import { type Ticket, Tickets, ticketTimes } from '@spillway/queue/tickets'
import { test } from 'vitest'
import { parsePrefer } from '../../src/passwords/endpoint.ts'

test('the holder of a ticket comes back well before its turn, after one second at least and five at most', () => {
  const after = (etaMs: number) => ticketTimes(etaMs, 60_000).retryAfter
  assert.deepEqual([10, 1_400, 3_000, 5_000, 7_200, 50_000].map(after), [1, 1, 2, 3, 5, 5])
  assert.deepEqual(ticketTimes(12_340, 60_000), { retryAfter: 5, eta: 12.3 })
  assert.deepEqual(ticketTimes(Number.POSITIVE_INFINITY, 60_000), { retryAfter: 5 })
})

test('the ticket is valid for another second after its Retry-After', () => {
  const before = (ticketLeftMs: number) => ticketTimes(50_000, ticketLeftMs).retryAfter
  assert.deepEqual([6_000, 5_999, 3_000, 1_500].map(before), [5, 4, 2, 1])
})

// A client's preferences, by RFC 7240.

const nothing = { holdMs: undefined, applied: undefined }
const wait = (seconds: number) => ({ holdMs: seconds * 1_000, applied: `wait=${seconds}` })
const async = { holdMs: 0, applied: 'respond-async' }

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
  ['respond-async, wait=5', { holdMs: 5_000, applied: 'respond-async, wait=5' }],
  ['respond-async, respond-async, wait=5', { holdMs: 5_000, applied: 'respond-async, wait=5' }],
  ['wait=5, respond-async', { holdMs: 5_000, applied: 'respond-async, wait=5' }],
  [['respond-async', 'wait=5'], { holdMs: 5_000, applied: 'respond-async, wait=5' }],
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

// How long a ticket is good by the clock of the gateway that reads it.

const isObject = (contents: unknown): contents is object => typeof contents === 'object'
const tickets = new Tickets(parseKeyring(`k1:${randomBytes(32).toString('base64')}`), 'ticket', isObject)

/** A ticket that ends so far away by Redis's clock, and by a gateway's. */
function ticketOf(deadlineInS: number, expiresInS: number): Ticket<object> {
  const inS = (seconds: number) => Date.now() + seconds * 1_000
  const request = { id: randomUUID(), name: 'verify', attempt: 1, contents: { kind: 'login' } } as const
  return { ...request, deadline: inS(deadlineInS), expiresAt: inS(expiresInS) }
}

test("a ticket opens until a minute and a half after its expiry by the gateway's clock, however far off Redis's is", () => {
  for (const deadlineInS of [-86_400, 0, 86_400]) {
    for (const expiresInS of [60, -1, -80]) {
      const ticket = ticketOf(deadlineInS, expiresInS)
      assert.deepEqual(tickets.open(tickets.issue(ticket)), ticket)
    }
    assert.throws(() => tickets.open(tickets.issue(ticketOf(deadlineInS, -91))), { code: 'ticket_expired' })
  }
})

test('the length of a ticket tells nothing about the length of a password', () => {
  const lengthWith = (password: string) =>
    tickets.issue({ ...ticketOf(60, 60), contents: { kind: 'login', body: { email: 'a@b.example', password } } }).length
  const lengths = ['x', 'x'.repeat(64), 'x'.repeat(1_024)].map(lengthWith)
  assert.equal(new Set(lengths).size, 1, lengths.join())
})
