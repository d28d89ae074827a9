// How long a ticket is good by the clock of the gateway that reads it.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { parseKeyring } from '@spillway/queue/queue-client'
import { type Ticket, Tickets } from '@spillway/queue/wait/tickets'
import { test } from 'vitest'

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
