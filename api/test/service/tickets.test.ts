// Tickets that answer nothing: expired, forged, damaged, another service's.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { redisTime } from '@spillway/infra/rig/clocks'
import { newSealKey } from '@spillway/infra/start/secrets'
import { jobKey, queueKey } from '@spillway/queue/jobs/keys'
import { parseKeyring } from '@spillway/queue/queue-client'
import { Tickets } from '@spillway/queue/wait/tickets'
import { verdictKey, verdictSeal } from '@spillway/queue/wire/reply'
import { test } from 'vitest'
import { TICKET_MAX_LENGTH } from '../../src/routes/tickets.ts'
import { slowAccount } from '../account.ts'
import { type Answer, assertProblem, exchange, expect, newCredentials, respondAsync } from '../client.ts'
import { openSystem, whileFrozen } from '../system.ts'

const system = await openSystem()
const worker = await system.worker({ SPILLWAY_TEST_HASHES: 'true' })
const { api } = await system.gateway()

/** What is written in clear in the job of a ticket. */
async function jobOf(ticket: string): Promise<{ deadline: number }> {
  const [id = ''] = ticket.split('.')
  return JSON.parse((await system.redis.hget(jobKey(system.namespace.queuePrefix, id), 'data')) ?? '')
}

test('a ticket can be redeemed until its time is over, and then no more', async () => {
  const { api: hasty } = await system.gateway({ TICKET_TTL_MS: '3000', LOGIN_WAIT_MS: '0' })
  // On a busy machine its time may be over first.
  const used = await until(async () => {
    const given = expect(202, await hasty.register(newCredentials(), respondAsync))
    return (await api.redeem(given.ticket)).status === 201 ? given : undefined
  })

  const credentials = newCredentials()
  const { ticket } = expect(202, await hasty.register(credentials, respondAsync))
  const { deadline } = await jobOf(ticket)
  const verdict = `${system.namespace.queuePrefix}:verdict:${ticket.split('.')[0]}`
  // Gateways estimate Redis's clock, each by itself.
  await until(async () => (await redisTime(system.redis)) > deadline + 1_000)
  assert.equal(await system.redis.exists(verdict), 0)
  assertProblem(await api.redeem(ticket), 410, 'ticket_expired')
  assertProblem(await api.redeem(used.ticket), 410, 'ticket_expired')
  assertProblem(await api.login(credentials), 401, 'invalid_credentials')
})

test('a job whose ticket expired before its turn is dropped, and redeeming it is told so when its time is over', async () => {
  const { api: hasty } = await system.gateway({ TICKET_TTL_MS: '3000', LOGIN_WAIT_MS: '0' })
  await whileFrozen(worker, async () => {
    const { ticket } = expect(202, await hasty.register(newCredentials(), respondAsync))
    const { deadline } = await jobOf(ticket)
    assertProblem(await api.redeem(ticket), 410, 'ticket_expired')
    // Gateway and worker estimate Redis's clock: for milliseconds only one knows that time is over.
    await until(async () => (await redisTime(system.redis)) > deadline + 1_000)
  })
  // Of a deferred job the worker sees that its client is absent before it sees its deadline.
  const dropped = await worker.waitForLog(({ msg }) => msg === 'job dropped' || msg === 'tickets dropped')
  assert.match(String(dropped.outcome), /^(expired|abandoned)$/)
})

test('a redemption is held no longer than its ticket is good, however long it may be otherwise', async () => {
  const { api: patient } = await system.gateway({ TICKET_TTL_MS: '9000', LOGIN_WAIT_MS: '6000' })
  await whileFrozen(worker, async () => {
    const { ticket } = expect(202, await patient.register(newCredentials(), respondAsync))
    // With five seconds behind it, it has four left.
    expect(202, await patient.redeem(ticket, { headers: { prefer: 'wait=5' } }))
    const { ticket: fresh } = expect(202, await patient.register(newCredentials(), respondAsync))
    const [expired, held] = [patient.redeem(ticket), patient.redeem(fresh)]
    assertProblem(await Promise.race([expired, held]), 410, 'ticket_expired')
    expect(202, await held)
  })
})

test('a ticket whose password could not be hashed stays good', async () => {
  const { ticket } = expect(202, await api.login(await slowAccount(system.database, 1), respondAsync))
  const [id = ''] = ticket.split('.')
  const { queuePrefix } = system.namespace
  const verdict = await until(() => system.redis.get(verdictKey(queuePrefix, id)))
  const { deadline } = await jobOf(ticket)
  const keyring = parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? '')
  const failure = keyring.seal(verdictSeal({ id, name: 'verify', deadline }), {
    kind: 'refused',
    code: 'hashing_failed',
  })
  await system.redis.set(verdictKey(queuePrefix, id), failure, 'KEEPTTL')
  for (let n = 0; n < 2; n++) assertProblem(await api.redeem(ticket), 500, 'internal_error')
  await system.redis.set(verdictKey(queuePrefix, id), verdict, 'KEEPTTL')
  expect(200, await api.redeem(ticket))
})

test('a first login whose job ends without a verdict is told when to come again, and counts for nothing', async () => {
  const { api: strict } = await system.gateway({ LIMIT_PER_ADDRESS: '1' })
  const { queuePrefix } = system.namespace
  const keyring = parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? '')
  await whileFrozen(worker, async () => {
    for (const code of ['expired', 'unavailable'] as const) {
      // One that counted would leave no room for the next, which would go behind.
      const held = strict.login(newCredentials(), { headers: { prefer: 'wait=8' }, keepTicket: true })
      const id = await until(() => system.redis.lindex(queueKey(queuePrefix, 'wait'), 0))
      const { deadline } = JSON.parse((await system.redis.hget(jobKey(queuePrefix, id), 'data')) ?? '')
      const refused = keyring.seal(verdictSeal({ id, name: 'verify', deadline }), { kind: 'refused', code })
      await system.redis.set(verdictKey(queuePrefix, id), refused, 'PX', 60_000)
      const answer = await held
      assertProblem(answer, 503, code === 'expired' ? 'busy' : 'unavailable')
      assert.ok(Number(answer.headers.get('retry-after')) > 0)
      await system.redis.del(queueKey(queuePrefix, 'wait'))
    }
  })
})

test('a job that fails, because no worker can open it, is told as unavailable, counts for nothing, and loses its ticket', async () => {
  const { api: strict } = await system.gateway({ LIMIT_PER_ADDRESS: '1' })
  const { queuePrefix } = system.namespace
  const damage = async (id: string) => {
    const data = JSON.parse((await system.redis.hget(jobKey(queuePrefix, id), 'data')) ?? '')
    await system.redis.hset(jobKey(queuePrefix, id), 'data', JSON.stringify({ ...data, sealed: `${data.sealed}x` }))
  }
  for (let n = 0; n < 2; n++) {
    const answers: Promise<Answer>[] = []
    await whileFrozen(worker, async () => {
      answers.push(strict.login(newCredentials(), { headers: { prefer: 'wait=8' }, keepTicket: true }))
      await damage(await until(() => system.redis.lindex(queueKey(queuePrefix, 'wait'), 0)))
    })
    for (const answer of answers) assertProblem(await answer, 503, 'unavailable')
  }
  const { ticket } = await whileFrozen(worker, async () => {
    const given = expect(202, await api.register(newCredentials(), respondAsync))
    await damage(given.ticket.split('.')[0] ?? '')
    return given
  })
  await until(async () => (await api.redeem(ticket)).body.code === 'ticket_lost', { what: 'the end of the ticket' })
})

test('a string that is no ticket of this service is refused', async () => {
  const { ticket } = expect(202, await api.register(newCredentials(), respondAsync))
  const other = expect(202, await api.register(newCredentials(), respondAsync))
  const [id = '', kid = '', sealed = ''] = ticket.split('.')
  const [otherId = ''] = other.ticket.split('.')
  const flipped = `${sealed.startsWith('A') ? 'B' : 'A'}${sealed.slice(1)}`
  const forgeries = [
    '',
    '.',
    'ticket',
    id,
    `${id}.`,
    `${id}.${kid}`,
    `${id}.${kid}.`,
    `${id}.nobody.${sealed}`,
    `${id}.${kid}.${flipped}`,
    `${id}.${kid}.${sealed.slice(0, -4)}`,
    `${otherId}.${kid}.${sealed}`,
    `.${kid}.${sealed}`,
    'x'.repeat(2_048),
  ]
  for (const forgery of forgeries) assertProblem(await api.redeem(forgery), 400, 'invalid_ticket')
  assertProblem(await api.redeem('x'.repeat(2_049)), 422, 'invalid_request')
  expect(201, await api.redeem(ticket))
})

test('the longest ticket that is given can be redeemed', async () => {
  // The longest name of a seal key, and an address with quotes, two bytes each in JSON.
  const kid = 'k'.repeat(32)
  const email = `"${'.'.repeat(62)}"@${'x.'.repeat(94)}x`
  const isObject = (contents: unknown): contents is object => typeof contents === 'object'
  const issued = new Tickets(parseKeyring(newSealKey(kid)), 'ticket', isObject).issue({
    contents: { kind: 'register', email },
    job: { id: randomUUID(), name: 'verify', deadline: Number.MAX_SAFE_INTEGER },
    expiresAt: Number.MAX_SAFE_INTEGER,
  })
  assert.ok(issued.length <= TICKET_MAX_LENGTH, `${issued.length} characters`)

  const answer = await api.register({ email, password: newCredentials().password }, respondAsync)
  const { ticket } = expect(202, answer)
  assert.ok(ticket.length <= issued.length)
  expect(201, await api.redeem(ticket))
})

test('a ticket sealed by another service, or for another purpose, is refused', async () => {
  const { api: foreign } = await system.gateway({ SPILLWAY_SEAL_KEYS: newSealKey() })
  const { ticket } = expect(202, await foreign.register(newCredentials(), respondAsync))
  assertProblem(await api.redeem(ticket), 400, 'invalid_ticket')

  const held = expect(202, await api.login(await slowAccount(system.database, 1), respondAsync))
  const [id = ''] = held.ticket.split('.')
  const verdict = await until(() => system.redis.get(`${system.namespace.queuePrefix}:verdict:${id}`))
  assertProblem(await api.redeem(`${id}.${verdict}`), 400, 'invalid_ticket')
  expect(200, await api.redeem(held.ticket))
})

test('a verdict written into Redis by someone else answers nothing', async () => {
  const { email } = await api.newAccount()
  const attempt = expect(202, await api.login({ email, password: 'not the password' }, respondAsync))
  const mine = await api.newAccount()
  const right = expect(202, await api.login(mine, respondAsync))
  const key = (ticket: string) => `${system.namespace.queuePrefix}:verdict:${ticket.split('.')[0]}`
  const match = await until(() => system.redis.get(key(right.ticket)))
  await until(() => system.redis.get(key(attempt.ticket)))
  await system.redis.set(key(attempt.ticket), match, 'KEEPTTL')
  expect(202, await api.redeem(attempt.ticket, respondAsync))
  await system.redis.set(key(attempt.ticket), 'match', 'KEEPTTL')
  expect(202, await api.redeem(attempt.ticket, respondAsync))
  expect(200, await api.redeem(right.ticket))
})

test('a seal key is rotated without losing a ticket', async (t) => {
  const rotated = await openSystem(t)
  const [older, newer] = [newSealKey('older'), newSealKey('newer')]
  await rotated.worker({ SPILLWAY_SEAL_KEYS: `${newer},${older}` })
  const before = await rotated.gateway({ SPILLWAY_SEAL_KEYS: `${older},${newer}` })
  const between = await rotated.gateway({ SPILLWAY_SEAL_KEYS: `${newer},${older}` })
  const credentials = newCredentials()
  const { ticket } = expect(202, await before.api.register(credentials, respondAsync))
  expect(201, await between.api.redeem(ticket))
  const tokens = expect(200, await between.api.login(credentials))
  expect(204, await before.api.changePassword(tokens.accessToken, credentials.password))
})

test('of a thousand connections that redeem one ticket at once a few are held, and all others told to come later', async () => {
  // Not in this process, which has the thousand clients.
  const { api, opsUrl } = await system.gatewayProcess({ LOGIN_WAIT_MS: '100000' })
  const credentials = await api.newAccount()
  const [connections, heldMax] = [1_000, 8]
  const answers: string[] = []
  const { asked } = await whileFrozen(worker, async () => {
    const { ticket } = expect(202, await api.login(credentials, respondAsync))
    const asked = Array.from(
      { length: connections },
      async () => void answers.push(await redeemByItself(api.url, ticket)),
    )
    await until(() => answers.length >= connections - heldMax, { what: 'an answer to all but the held' })
    return { asked }
  })
  await Promise.all(asked)
  for (const answer of answers.slice(0, -heldMax)) assert.match(answer, /^HTTP\/1.1 429 [\s\S]*\r\nretry-after: 1\r\n/)
  const held = answers.slice(-heldMax).map((answer) => Number(answer.split(' ')[1]))
  assert.deepEqual(held.sort(), [200, ...Array.from({ length: heldMax - 1 }, () => 409)])
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
  assert.match(metrics, /^spillway_refused_total{reason="ticket_held"} 992$/m)
})

/** Redeems a ticket on a connection of its own; the answer as it came. */
function redeemByItself(url: string, ticket: string): Promise<string> {
  const body = JSON.stringify({ ticket })
  const head = `host: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
  return exchange(url, `POST /v1/tickets/redeem HTTP/1.1\r\n${head}\r\n\r\n${body}`)
}
