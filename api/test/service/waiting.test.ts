// How long a request is held, and what it gets when the wait runs out first.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { accountWithHash, gatedAccount } from '../account.ts'
import { type Answer, asIs, assertProblem, expect, keepTicket, newCredentials, respondAsync } from '../client.ts'
import { heldAnyway, lockOptions, locksAwaited, shareSystem, whileFrozen } from '../system.ts'

const system = await shareSystem()
const { warmWorker: worker } = system
const { api: brief } = await system.gateway({ LOGIN_WAIT_MS: '300' }, heldAnyway)
const { api: patient } = await system.gateway({}, heldAnyway)
const prefer = (preference: string) => ({ headers: { prefer: preference } })

test('a login that is foreseen to end within the wait is held and answered', async () => {
  const { api } = await system.gateway()
  const quick = await accountWithHash(system.database, '$spillway-token$')
  // Slow answers are foreseen, and get tickets at once, until there were quick ones.
  await until(async () => {
    expect(200, await api.login(quick))
    return (await api.login(quick, asIs)).status === 200
  })
})

test('a login that takes longer than the wait gets a ticket when the wait runs out, and its answer later', async (t) => {
  const { account, open } = await gatedAccount(t, system.database)
  const held = await timed(brief.login(account, keepTicket))
  const { ticket } = assertTicket(held.answer)
  assert.ok(held.tookMs >= 290, `held for ${held.tookMs} ms`)
  open()
  expect(200, await patient.redeem(ticket))
})

test('respond-async gives the ticket at once, however quick the answer would be', async () => {
  const credentials = newCredentials()
  for (const start of ['register', 'login'] as const) {
    const answer = await patient[start](credentials, respondAsync)
    assert.equal(answer.headers.get('preference-applied'), 'respond-async')
    expect(start === 'register' ? 201 : 200, await patient.redeem(assertTicket(answer).ticket))
  }
})

test('wait=N holds for N seconds, with respond-async as well, and says so', async (t) => {
  for (const preference of ['wait=1', 'respond-async, wait=1']) {
    const { account, open } = await gatedAccount(t, system.database)
    const { answer, tookMs } = await timed(patient.login(account, prefer(preference)))
    open()
    expect(200, await patient.redeem(assertTicket(answer).ticket))
    assert.ok(tookMs >= 990, `held for ${tookMs} ms`)
    assert.equal(answer.headers.get('preference-applied'), preference)
  }
  const credentials = await accountWithHash(system.database, '$spillway-token$')
  const quick = await patient.login(credentials, prefer('return=minimal, Wait="7"; foo, respond-ASYNC'))
  expect(200, quick)
  assert.equal(quick.headers.get('preference-applied'), 'respond-async, wait=7')
})

test('the time before the job is added is part of the wait', async () => {
  await whileFrozen(worker, async () => {
    const { ticket } = assertTicket(await patient.login(newCredentials(), respondAsync))
    const held = await system.database.$transaction(async (locked) => {
      await locked.$executeRaw`LOCK TABLE users IN ACCESS EXCLUSIVE MODE`
      const held = patient.login(newCredentials(), prefer('wait=4'))
      await until(() => locksAwaited(system.database))
      await sleep(2_500)
      return { answer: held }
    }, lockOptions)
    const later = patient.redeem(ticket, prefer('wait=4'))
    assert.equal(await Promise.race([held.answer, later]), await held.answer)
    assertTicket(await held.answer)
    assertTicket(await later)
  })
})

test('a wait beyond the limit is the limit, and is not said to be applied', async (t) => {
  const { account, open } = await gatedAccount(t, system.database)
  const { answer, tookMs } = await timed(brief.login(account, prefer('wait=60')))
  open()
  assert.ok(tookMs >= 290, `held for ${tookMs} ms`)
  assert.equal(answer.headers.get('preference-applied'), null)
  expect(200, await patient.redeem(assertTicket(answer).ticket))
})

test('redeeming waits by the same rules', async (t) => {
  const { account, open } = await gatedAccount(t, system.database)
  const asked = await patient.login(account, respondAsync)
  const first = await patient.redeem(assertTicket(asked).ticket, respondAsync)
  const second = await timed(brief.redeem(assertTicket(first).ticket, keepTicket))
  assert.ok(second.tookMs >= 290, `held for ${second.tookMs} ms`)
  open()
  expect(200, await patient.redeem(assertTicket(second.answer).ticket))
  assertProblem(await patient.redeem(assertTicket(asked).ticket), 409, 'ticket_used')
})

/** Checks that an answer is a ticket that says when to come back. */
function assertTicket(answer: Answer): { ticket: string } {
  const { ticket, retryAfter, position, eta } = expect(202, answer)
  assert.equal(answer.headers.get('retry-after'), String(retryAfter))
  assert.ok(retryAfter >= 1 && retryAfter <= 5)
  assert.ok(position >= 0 && (eta ?? 0) >= 0, `position ${position}, ETA ${eta} s`)
  return { ticket }
}

async function timed(answer: Promise<Answer>): Promise<{ answer: Answer; tookMs: number }> {
  const startedAt = performance.now()
  return { answer: await answer, tookMs: performance.now() - startedAt }
}
