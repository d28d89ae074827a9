// Tickets in the routes of an application, by a queue and by this process, and the plugin of Fastify with the client for pages.
import assert from 'node:assert/strict'
import { createPasswordsWith } from '@spillway/client/application/create-passwords'
import type { Passwords, PasswordsOptions, Redeemed } from '@spillway/client/application/types'
import { ask } from '@spillway/client/browser'
import spillway from '@spillway/client/fastify'
import { until } from '@spillway/local/rig'
import { type FastifyReply, fastify } from 'fastify'
import { type TestContext, test } from 'vitest'
import { argon2id, besideProgram, passwordsOf, rejectsWith } from '../application.ts'
import { sealKeys, startedWorker } from '../parts.ts'
import { type Space, spaceFor } from '../space.ts'

const SLOW = '$spillway-wait$2000$'
/** Openwall's vector of "U*U", at cost 5. */
const stored = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
const right = 'U*U'

async function queued(t: TestContext): Promise<{ space: Space; passwords: Passwords }> {
  const space = spaceFor(t)
  await startedWorker(space, { slots: 1, env: { SHUTDOWN_GRACE_MS: '0', HASH_ENGINE: 'packages' } })
  const passwords = passwordsOf(space)
  await until(() => passwords.capacity().slots > 0, { what: 'a worker that the application knows of' })
  return { space, passwords }
}

function inPlace(t: TestContext, options: PasswordsOptions = {}): Passwords {
  const silent = { error() {}, warn() {}, info() {}, debug() {} }
  const own = { inProcess: true, policy: argon2id, log: silent, concurrency: 1 }
  const passwords = createPasswordsWith(besideProgram, { ...own, ...options })
  t.onTestFinished(() => passwords.close())
  return passwords
}

function answerOf(redeemed: Redeemed) {
  assert.equal(redeemed.outcome, 'waiting')
  return redeemed.answer
}

async function isAnsweredOnce(passwords: Passwords, other = passwords): Promise<void> {
  const ticket = await passwords.begin(right, stored, { subject: 'ada', rehash: true })
  const redeemed = await other.redeem(ticket, { holdMs: 60_000 })
  assert.equal(redeemed.outcome, 'match')
  assert.equal(redeemed.subject, 'ada')
  assert.match(redeemed.newHash ?? '', /^\$argon2id\$/)
  const again = await other.redeem(ticket).catch((error: unknown) => error)
  assert.ok(again instanceof Error && 'code' in again && /^ticket_(used|lost)$/.test(String(again.code)), String(again))
  for (const [password, hash] of [
    ['wrong', stored],
    [right, null],
    [right, 'no hash'],
  ] as const) {
    const wrong = await passwords.begin(password, hash, { subject: 'ada' })
    assert.deepEqual(await other.redeem(wrong, { holdMs: 60_000 }), { outcome: 'mismatch', subject: 'ada' })
  }
}

async function isNoTicket(passwords: Passwords): Promise<void> {
  const ticket = await passwords.begin(right, stored)
  await rejectsWith('invalid_ticket', passwords.redeem(`${ticket.slice(0, -1)}${ticket.endsWith('A') ? 'B' : 'A'}`))
  await rejectsWith('invalid_ticket', passwords.redeem(''))
  await passwords.redeem(ticket, { holdMs: 60_000 })
  const short = await passwords.begin(right, stored, { lifeMs: 500 })
  await until(
    () =>
      passwords.redeem(short).then(
        () => false,
        (error) => error.code === 'ticket_expired',
      ),
    {
      what: 'a ticket that has expired',
    },
  )
}

test('by a queue a ticket is answered once, at any process with the keys, and nobody else can make one', async (t) => {
  const { space, passwords } = await queued(t)
  const other = passwordsOf(space)
  await isAnsweredOnce(passwords, other)
  await isNoTicket(passwords)
})

test('of many redemptions at once one is answered', async (t) => {
  const { passwords } = await queued(t)
  const ticket = await passwords.begin(right, stored)
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map(() => passwords.redeem(ticket, { holdMs: 60_000 })))
  const codes = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.code : outcome.value.outcome))
  assert.deepEqual(codes.sort(), ['match', 'ticket_used', 'ticket_used', 'ticket_used'])
})

test('without a queue this process answers its own tickets, once', async (t) => {
  const passwords = inPlace(t)
  await isAnsweredOnce(passwords)
  await isNoTicket(passwords)
  const another = inPlace(t)
  await rejectsWith('invalid_ticket', another.redeem(await passwords.begin(right, stored)))
})

test('while others are ahead the answer says how many, and a client that leaves loses nothing', async (t) => {
  const { passwords } = await queued(t)
  const begun = await Promise.all([SLOW, SLOW, stored].map((hash) => passwords.begin(right, hash)))
  const [, , ticket = ''] = begun
  const answer = answerOf(await passwords.redeem(ticket, { holdMs: 0 }))
  assert.equal(answer.ticket, ticket)
  assert.ok(answer.position !== undefined && answer.position > 0, JSON.stringify(answer))
  assert.ok(answer.retryAfter >= 1 && answer.retryAfter <= 5, JSON.stringify(answer))
  await assert.rejects(passwords.redeem(ticket, { signal: AbortSignal.timeout(50) }), { name: 'TimeoutError' })
  assert.equal((await passwords.redeem(ticket, { holdMs: 60_000 })).outcome, 'match')
})

test('more than is hashed within the life of a ticket is refused, and without a queue its line is told', async (t) => {
  const passwords = inPlace(t)
  const slow = stored.replace('$05$', '$12$')
  const begun = await Promise.all(Array.from({ length: 10 }, () => passwords.begin(right, slow)))
  const ticket = begun.at(-1) ?? ''
  const answer = answerOf(await passwords.redeem(ticket, { holdMs: 0 }))
  assert.ok(answer.position !== undefined && answer.position >= 1, JSON.stringify(answer))
  const many = Array.from({ length: 40 }, () => passwords.begin(right, slow, { lifeMs: 1_000 }))
  const outcomes = await Promise.allSettled(many)
  const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.code] : []))
  assert.ok(refused.length > 0 && refused.every((code) => code === 'busy'), refused.join())
})

test('a page waits in the line of an application of Fastify, whose plugin is closed with it', async (t) => {
  const space = spaceFor(t)
  await startedWorker(space, { slots: 1, env: { SHUTDOWN_GRACE_MS: '0', HASH_ENGINE: 'packages' } })
  const app = fastify()
  t.onTestFinished(() => app.close())
  const { redisUrl: redis, prefix: queuePrefix } = space
  await app.register(spillway, { redis, queuePrefix, sealKeys, policy: argon2id })
  const { passwords } = app
  const answer = async (reply: FastifyReply, ticket: string) => {
    const redeemed = await passwords.redeem(ticket, { holdMs: 100 })
    if (redeemed.outcome === 'waiting') return await reply.code(202).send(redeemed.answer)
    if (redeemed.outcome === 'mismatch') return await reply.code(401).send({ code: 'invalid_credentials' })
    return { user: redeemed.subject }
  }
  app.post<{ Body: { password: string; slow?: boolean } }>('/login', async ({ body }, reply) =>
    answer(reply, await passwords.begin(body.password, body.slow ? SLOW : stored, { subject: 'ada' })),
  )
  app.post<{ Body: { ticket: string } }>('/v1/tickets/redeem', async ({ body }, reply) => answer(reply, body.ticket))
  const baseUrl = await app.listen()

  const states = new Set<string>()
  const page = {
    baseUrl,
    path: '/login',
    storage: null,
    onProgress: ({ state }: { state: string }) => void states.add(state),
  }
  const slow = ask({ ...page, body: { password: right, slow: true } })
  assert.deepEqual(await ask({ ...page, body: { password: right } }), { user: 'ada' })
  await assert.rejects(ask({ ...page, body: { password: 'wrong' } }), { code: 'invalid_credentials' })
  assert.deepEqual(await slow, { user: 'ada' })
  assert.deepEqual([...states].sort(), ['queued', 'sending'])

  const used = await app.inject({ method: 'POST', url: '/v1/tickets/redeem', payload: { ticket: 'x.y' } })
  assert.equal(used.statusCode, 400)
  assert.equal(used.json().code, 'invalid_ticket')
  await app.close()
  await rejectsWith('closed', passwords.hash('x'))
})

test("what is busy is answered 503 with Retry-After, also by an application's own error handler", async (t) => {
  const space = spaceFor(t)
  const app = fastify()
  t.onTestFinished(() => app.close())
  const { redisUrl: redis, prefix: queuePrefix } = space
  await app.register(spillway, { redis, queuePrefix, sealKeys, waitMs: 200 })
  app.setErrorHandler(async (_error, _request, reply) => reply.code(503).send('later'))
  app.get('/', async () => await app.passwords.hash('x'))
  await until(async () => (await app.inject('/')).headers['retry-after'] === '1', { what: 'no worker' })
})
