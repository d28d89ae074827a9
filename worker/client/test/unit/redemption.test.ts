// What a redemption finds of its ticket's jobs, and what it starts again.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { PasswordClientError } from '@spillway/queue/errors'
import { Tickets } from '@spillway/queue/tickets'
import type { Result } from '@spillway/queue/wire/job'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { test } from 'vitest'
import { followTicket } from '../../src/application/redemption.ts'
import { type ApplicationTicket, ApplicationTickets } from '../../src/application/tickets.ts'

const request = { password: 'right', storedHash: 'stored' }
const ticket: ApplicationTicket = {
  ...{ id: 'a', name: 'verify', attempt: 1, number: 12, contents: { request, subject: 'ada' } },
  ...{ deadline: Date.now() + 60_000, expiresAt: Date.now() + 60_000 },
}
const match: Result = { kind: 'match' }
type State = 'result' | 'waiting' | 'ended'

/** A queue with these jobs. `gone`: a client that has left while it waits. */
function queueWith(jobs: Record<string, State>, gone?: AbortController) {
  const done: unknown[] = []
  const expected = (job: { id: string; name: 'verify' | 'hash'; deadline: number }) => ({
    job,
    end: () => void done.push(['end', job.id]),
    result: async (holdMs: number) => {
      done.push(['held', job.id, holdMs])
      gone?.abort()
      if (gone) throw new PasswordClientError('wait_aborted', 'the caller went away')
      return jobs[job.id] === 'result' ? match : undefined
    },
  })
  const client: Parameters<typeof followTicket>[0] = {
    admitTo: (place) => ({ place, goesFirst: false, end() {}, added() {} }),
    submit: async ({ job, admitted: { place }, presentMs }) => {
      done.push(['submit', job.id, place, presentMs])
      return { ...expected(job), number: place === 'ticketed' ? 90 : undefined }
    },
    resume: async (job) => ({ ...expected(job), state: jobs[job.id] ?? 'absent' }),
    present: async ({ id }, forMs) => void done.push(['present', id, forMs]),
    left: async ({ id }) => void done.push(['left', id]),
    estimates: {
      numbered: (number) => void done.push(['seen', number]),
      line: () => ({ serving: 10, last: 90, rate: 1, paused: false }),
      etaMs: (number = 11) => (number - 10) * 1_000,
    },
  }
  return {
    done,
    follow: (given = ticket, place: () => 'open' | 'ticketed' = () => assert.fail('there is a job')) =>
      followTicket(client, given, { place, holdMs: 8_000, signal: (gone ?? new AbortController()).signal }),
  }
}

test('a result is there at once, and a job that waits is held for a client that counts as present', async () => {
  const answered = queueWith({ a: 'result' })
  assert.deepEqual((await answered.follow()).result, match)
  assert.deepEqual(answered.done, [
    ['seen', 12],
    ['held', 'a', 8_000],
  ])
  const waiting = queueWith({ a: 'waiting' })
  const next = { attempt: 1, number: 12, position: 2, etaMs: 2_000 }
  assert.deepEqual(await waiting.follow(), { result: undefined, ...next })
  assert.deepEqual(waiting.done.slice(1), [
    ['present', 'a', 15_000],
    ['held', 'a', 8_000],
  ])
})

test('a job that Redis does not have is added again: open without a number, or in line with a new one', async () => {
  const { done, follow } = queueWith({})
  const open = await follow(ticket, () => 'open')
  assert.deepEqual([open.attempt, open.number, open.position, open.etaMs], [1, undefined, 0, 1_000])
  const inLine = await follow({ ...ticket, attempt: 3 }, () => 'ticketed')
  assert.deepEqual([inLine.attempt, inLine.number, inLine.position], [3, 90, 80])
  const submitted = done.filter((entry) => Array.isArray(entry) && entry[0] === 'submit')
  assert.deepEqual(submitted, [
    ['submit', 'a', 'open', 15_000],
    ['submit', 'a.3', 'ticketed', 15_000],
  ])
})

test('a job that has ended without a result is followed by the next attempt, which others may have started', async () => {
  const { done, follow } = queueWith({ a: 'ended', 'a.2': 'ended' })
  assert.equal((await follow(ticket, () => 'open')).attempt, 3)
  const ended = ['a', 'a.2', 'a.3'].map((id) => ['end', id])
  assert.deepEqual(done, [['seen', 12], ...ended, ['submit', 'a.3', 'open', 15_000], ['held', 'a.3', 8_000]])
  const others = await queueWith({ a: 'ended', 'a.2': 'waiting' }).follow()
  assert.deepEqual([others.attempt, others.number], [2, undefined])
})

test('a new ticket has no job, and asks for none', async () => {
  const { done, follow } = queueWith({ a: 'waiting' })
  const { number: _, ...fresh } = { ...ticket, attempt: 0 }
  assert.deepEqual(await follow(fresh, () => 'ticketed').then(({ attempt, number }) => [attempt, number]), [1, 90])
  assert.deepEqual(done, [
    ['submit', 'a', 'ticketed', 15_000],
    ['held', 'a', 8_000],
  ])
})

test('a client that has left is present no longer, and without a place nothing is added', async () => {
  const left = queueWith({ a: 'waiting' }, new AbortController())
  assert.equal((await left.follow()).result, undefined)
  assert.deepEqual(left.done.at(-1), ['left', 'a'])
  const full = queueWith({})
  const busy = new Error('busy')
  await assert.rejects(
    full.follow(ticket, () => {
      throw busy
    }),
    busy,
  )
  assert.deepEqual(full.done.slice(1), [['end', 'a']])
})

// Tickets themselves.

const keyring = parseKeyring(`test:${randomBytes(32).toString('base64')}`)

test('a ticket holds its request, and is as long for every user', () => {
  const tickets = new ApplicationTickets(keyring)
  const { number: _, ...first } = ticket
  assert.deepEqual(tickets.open(tickets.issue(ticket)), ticket)
  const lengthOf = (storedHash: string | null) =>
    tickets.issue({ ...first, contents: { request: { password: 'x', storedHash } } }).length
  assert.equal(lengthOf(null), lengthOf('x'.repeat(193)))
})

test('no text, no ticket of a gateway and no expired one is redeemed', () => {
  const tickets = new ApplicationTickets(keyring)
  const isAny = (contents: unknown): contents is object => contents !== null
  const ofGateway = new Tickets(keyring, 'ticket', isAny).issue(ticket)
  const empty = new Tickets(keyring, 'application-ticket', isAny).issue({ ...ticket, contents: {} })
  for (const text of ['', 'a.', `b.${tickets.issue(ticket).slice(2)}`, ofGateway, empty])
    assert.throws(() => tickets.open(text), { name: 'PasswordsError', code: 'invalid_ticket' })
  const expired = { ...ticket, expiresAt: Date.now() - 100_000 }
  assert.throws(() => tickets.open(tickets.issue(expired)), { name: 'PasswordsError', code: 'ticket_expired' })
})
