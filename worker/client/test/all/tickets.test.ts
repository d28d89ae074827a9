// Tickets of a queue in the routes of an application.
import assert from 'node:assert/strict'
import type { Passwords, PasswordsOptions } from '@spillway/client/application/types'
import { ask } from '@spillway/client/follow'
import { closedGate, createNamespace } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import { query } from '@spillway/infra/services/query'
import { type FastifyReply, fastify } from 'fastify'
import { type TestContext, test } from 'vitest'
import { workerFor } from '../../../test/parts.ts'
import type { Space } from '../../../test/space.ts'
import { passwordsOf, rejectsWith, bcryptHash as stored } from '../passwords.ts'

const right = 'U*U'
/** Of an account whose hash stays. */
const currentHash = () => stored

/** The mark of the page, in a database of its own. */
async function marking(t: TestContext): Promise<NonNullable<PasswordsOptions['markUsed']>> {
  const { databaseUrl, close } = await createNamespace()
  t.onTestFinished(close)
  await query(databaseUrl, 'create table redeemed_tickets (id text primary key, until timestamptz not null)')
  const mark = 'insert into redeemed_tickets values ($1, $2) on conflict do nothing returning id'
  return async (id, until) => (await query(databaseUrl, mark, [id, until])).length === 1
}

async function queued(
  t: TestContext,
  options: PasswordsOptions = {},
): Promise<{ space: Space; passwords: Passwords; other: Passwords }> {
  const { space } = await workerFor(t, { slots: 1, env: { SHUTDOWN_GRACE_MS: '0', HASH_ENGINE: 'packages' } })
  const marked = { markUsed: await marking(t), ...options }
  const [passwords, other] = [passwordsOf(space, marked), passwordsOf(space, marked)]
  await until(() => passwords.capacity().slots > 0, { what: 'a worker that the application knows of' })
  return { space, passwords, other }
}

async function isAnsweredOnce(passwords: Passwords, other = passwords): Promise<void> {
  const ticket = await passwords.begin(right, stored, { subject: 'ada', rehash: true })
  const redeemed = await other.redeem(ticket, { currentHash, holdMs: 60_000 })
  assert.ok(redeemed.outcome === 'match')
  assert.deepEqual([redeemed.subject, redeemed.storedHash], ['ada', stored])
  assert.match(redeemed.newHash ?? '', /^\$argon2id\$/)
  await rejectsWith('ticket_used', other.redeem(ticket, { currentHash }))
  for (const [password, hash] of [
    ['wrong', stored],
    [right, null],
    [right, 'no hash'],
  ] as const) {
    const wrong = await passwords.begin(password, hash, { subject: 'ada' })
    assert.deepEqual(await other.redeem(wrong, { currentHash, holdMs: 60_000 }), {
      outcome: 'mismatch',
      subject: 'ada',
    })
  }
}

async function isNoTicket(passwords: Passwords): Promise<void> {
  const ticket = await passwords.begin(right, stored)
  await rejectsWith(
    'invalid_ticket',
    passwords.redeem(`${ticket.slice(0, -1)}${ticket.endsWith('A') ? 'B' : 'A'}`, { currentHash }),
  )
  await rejectsWith('invalid_ticket', passwords.redeem('', { currentHash }))
  await passwords.redeem(ticket, { currentHash, holdMs: 60_000 })
  const short = await passwords.begin(right, stored, { lifeMs: 500 })
  await until(
    () =>
      passwords.redeem(short, { currentHash }).then(
        () => false,
        (error) => error.code === 'ticket_expired',
      ),
    { what: 'a ticket that has expired' },
  )
}

test('by a queue a ticket is answered once, at any process with the keys, and nobody else can make one', async (t) => {
  const { passwords, other } = await queued(t)
  await isAnsweredOnce(passwords, other)
  await isNoTicket(passwords)
})

test('of many redemptions at once one is answered', async (t) => {
  const { passwords, other } = await queued(t)
  const ticket = await passwords.begin(right, stored)
  const redeeming = [passwords, other, passwords, other].map(async ({ redeem }) => {
    // A result is announced where it was redeemed last: the other process reads it at the end of its hold.
    const held = () => redeem(ticket, { currentHash, holdMs: 3_000 })
    let redeemed = await held()
    while (redeemed.outcome === 'waiting') redeemed = await held()
    return redeemed
  })
  const outcomes = await Promise.allSettled(redeeming)
  const codes = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.code : outcome.value.outcome))
  assert.deepEqual(codes.sort(), ['match', 'ticket_used', 'ticket_used', 'ticket_used'])
})

test('whoever writes to Redis makes no used ticket good again', async (t) => {
  const { space, passwords, other } = await queued(t)
  const { redis, prefix } = space
  const ticket = await passwords.begin(right, stored)
  const keys = () => redis.keys(`${prefix}*`)
  const [id] = ticket.split('.')
  await until(async () => (await redis.exists(`${prefix}:result:${id}`)) === 1, { what: 'a result' })
  const recorded = await Promise.all((await keys()).map(async (key) => ({ key, value: await redis.dumpBuffer(key) })))
  assert.equal((await passwords.redeem(ticket, { currentHash })).outcome, 'match')
  await redis.del(await keys())
  for (const { key, value } of recorded) if (value !== null) await redis.restore(key, 0, value, 'REPLACE')
  await rejectsWith('ticket_used', passwords.redeem(ticket, { currentHash }))
  await rejectsWith('ticket_used', other.redeem(ticket, { currentHash }))
})

test('a mark that fails leaves the ticket good, and without one there are no tickets of a queue', async (t) => {
  let isDown = true
  const used = new Map<string, Date>()
  const markUsed = (id: string, until: Date) => {
    if (isDown) throw new Error('the database is away')
    return !used.has(id) && used.set(id, until) !== undefined
  }
  const { space, passwords } = await queued(t, { markUsed })
  const ticket = await passwords.begin(right, stored, { lifeMs: 60_000 })
  await assert.rejects(passwords.redeem(ticket, { currentHash, holdMs: 60_000 }), /the database is away/)
  isDown = false
  assert.equal((await passwords.redeem(ticket, { currentHash })).outcome, 'match')
  await rejectsWith('ticket_used', passwords.redeem(ticket, { currentHash }))
  const [[id, kept] = assert.fail('no mark')] = used
  assert.equal(id, ticket.split('.')[0])
  assert.ok(kept.getTime() > Date.now() + 60_000, kept.toISOString())
  const without = passwordsOf(space)
  await assert.rejects(without.begin(right, stored), /and the option markUsed/)
  await assert.rejects(without.redeem(ticket, { currentHash }), /and the option markUsed/)
})

test('a ticket whose job or result Redis has lost is started again, by any process, and is answered once', async (t) => {
  const { space, passwords, other } = await queued(t)
  const { redis, prefix } = space
  const gate = await closedGate(t)
  const ofGate = { currentHash: () => gate.storedHash, holdMs: 60_000 }
  const answered = await passwords.begin(right, stored)
  const waiting = await passwords.begin(right, gate.storedHash)
  const keys = await Promise.all([waiting, answered].map((ticket) => redis.keys(`${prefix}*:${ticket.split('.')[0]}`)))
  assert.ok(keys.every((ofTicket) => ofTicket.length > 0))
  await redis.del(keys.flat())
  gate.open()
  for (const redeemed of [
    await other.redeem(waiting, ofGate),
    await other.redeem(answered, { currentHash, holdMs: 60_000 }),
  ])
    assert.equal(redeemed.outcome, 'match')
  await rejectsWith('ticket_used', passwords.redeem(waiting, ofGate))
})

test('a ticket outlives no change of password: it is answered only while the verified hash is stored', async (t) => {
  const { passwords } = await queued(t)
  // A change of password, a login that stored a new hash, a deleted account, while a ticket waits.
  for (const now of [stored.replace('$05$', '$04$'), '', null, undefined]) {
    const ticket = await passwords.begin(right, stored, { subject: 'ada' })
    const asked: unknown[] = []
    const currentHash = async (subject?: string) => {
      asked.push(subject)
      return now
    }
    const error = await rejectsWith('hash_replaced', passwords.redeem(ticket, { currentHash, holdMs: 60_000 }))
    assert.equal(error.statusCode, 410)
    assert.deepEqual(asked, ['ada'])
  }
  const ticket = await passwords.begin(right, stored)
  const fails = () => Promise.reject(new Error('the database is away'))
  await assert.rejects(passwords.redeem(ticket, { currentHash: fails, holdMs: 60_000 }), /the database is away/)
  assert.equal((await passwords.redeem(ticket, { currentHash })).outcome, 'match')
  // @ts-expect-error without it an old password would open a session
  await assert.rejects(passwords.redeem(ticket), /needs the option currentHash/)
})

test('an old password does not match once another hash is stored, and its new hash replaces no newer one', async (t) => {
  const { passwords } = await queued(t)
  const changed = await passwords.hash('changed')
  const rehashed: { made: string; replaced: string }[] = []
  const verify = (password: string, now: string | null) =>
    passwords.verify(password, stored, {
      currentHash: () => now,
      onRehash: (made, replaced) => void rehashed.push({ made, replaced }),
    })
  assert.equal(await verify(right, changed), false)
  assert.equal(await verify(right, null), false)
  assert.equal(rehashed.length, 0)
  // Another login of the same user has stored a new hash of the same password.
  assert.equal(await verify(right, await passwords.hash(right)), true)
  assert.equal(rehashed.length, 0)
  assert.equal(await verify(right, stored), true)
  const replaced = rehashed.map(({ made, replaced }) => [made.slice(0, 10), replaced])
  assert.deepEqual(replaced, [['$argon2id$', stored]])
})

test('a page waits in the line of an application', async (t) => {
  const { space } = await workerFor(t, { slots: 1, env: { SHUTDOWN_GRACE_MS: '0', HASH_ENGINE: 'packages' } })
  const app = fastify()
  t.onTestFinished(() => app.close())
  const passwords = passwordsOf(space, { markUsed: await marking(t) })
  const gate = await closedGate(t)
  const hashOf = new Map([
    ['ada', stored],
    ['slow', gate.storedHash],
  ])
  const answer = async (reply: FastifyReply, ticket: string) => {
    const redeemed = await passwords.redeem(ticket, { currentHash: (subject = '') => hashOf.get(subject), holdMs: 100 })
    if (redeemed.outcome === 'waiting') return await reply.code(202).send(redeemed.answer)
    if (redeemed.outcome === 'mismatch') return await reply.code(401).send({ code: 'invalid_credentials' })
    return { user: redeemed.subject }
  }
  app.post<{ Body: { password: string; slow?: boolean } }>('/login', async ({ body }, reply) => {
    const subject = body.slow ? 'slow' : 'ada'
    return answer(reply, await passwords.begin(body.password, hashOf.get(subject) ?? null, { subject }))
  })
  app.post<{ Body: { ticket: string } }>('/v1/tickets/redeem', async ({ body }, reply) => answer(reply, body.ticket))
  const baseUrl = await app.listen()

  const states = new Set<string>()
  const page = { baseUrl, onProgress: ({ state }: { state: string }) => void states.add(state) }
  const slow = ask('/login', { ...page, body: { password: right, slow: true } })
  await until(() => states.has('queued'))
  gate.open()
  assert.deepEqual(await ask('/login', { ...page, body: { password: right } }), { user: 'ada' })
  await assert.rejects(ask('/login', { ...page, body: { password: 'wrong' } }), { code: 'invalid_credentials' })
  assert.deepEqual(await slow, { user: 'slow' })
  assert.deepEqual([...states].sort(), ['queued', 'sending'])

  const used = await app.inject({ method: 'POST', url: '/v1/tickets/redeem', payload: { ticket: 'x.y' } })
  assert.equal(used.statusCode, 400)
  assert.equal(used.json().code, 'invalid_ticket')
})
