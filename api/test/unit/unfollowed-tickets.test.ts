// Which clients have a ticket that they have not come for.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { createUnfollowedTickets } from '../../src/waiting/unfollowed-tickets.ts'

const client = { account: 'account', network: '203.0.113.1' }
const others = [
  { ...client, account: 'other' },
  { ...client, network: '203.0.113.2' },
]

test('a ticket is unfollowed until its client redeems it or it expires, and for no other account or network', () => {
  let nowMs = 0
  const tickets = createUnfollowedTickets(() => nowMs)
  assert.equal(tickets.has(client), false)
  tickets.given(client, 'first', 1_000)
  assert.deepEqual([client, ...others].map(tickets.has), [true, false, false])
  tickets.redeemed('unknown')
  assert.equal(tickets.has(client), true)
  tickets.redeemed('first')
  assert.equal(tickets.has(client), false)
  tickets.given(client, 'second', 1_000)
  nowMs = 1_000
  assert.equal(tickets.has(client), false)
})

test('the last ticket of a client is what counts', () => {
  const tickets = createUnfollowedTickets(() => 0)
  tickets.given(client, 'first', 1_000)
  tickets.given(client, 'second', 2_000)
  tickets.redeemed('first')
  assert.equal(tickets.has(client), true)
  tickets.redeemed('second')
  assert.equal(tickets.has(client), false)
})

test('of more clients than are remembered the oldest are forgotten', () => {
  const tickets = createUnfollowedTickets(() => 0)
  const clients = Array.from({ length: 10_001 }, (_, n) => ({ account: `${n}`, network: '' }))
  for (const [n, each] of clients.entries()) tickets.given(each, `job ${n}`, 1_000)
  assert.equal(clients.filter(tickets.has).length, 10_000)
  assert.equal(clients[0] && tickets.has(clients[0]), false)
})
