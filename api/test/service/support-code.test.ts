// From the support code that somebody was shown to the sentence that says why, in at most three calls.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { roles } from '../../src/ops/named.ts'
import { asIs, assertProblem, expect, fetchPatiently, respondAsync } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { openSystem, whileFrozen } from '../system.ts'

const mails = await startMailServer()
const system = await openSystem()
const worker = await system.worker()
const env = {
  OPS_PROXIES: '127.0.0.1',
  OPS_GROUPS: roles.map((role) => `${role}:${role}`).join(','),
  TRUST_PROXY: '127.0.0.1',
  GUESSES_PER_ACCOUNT: '2',
}
const { api, opsUrl } = await system.gateway(env)

const headersOf = (role: string) => ({ 'x-forwarded-user': 'anna', 'x-forwarded-groups': role })

async function ask<T>(role: string, path: string, init: RequestInit = {}): Promise<T> {
  const headers = { ...headersOf(role), 'content-type': 'application/json' }
  const response = await fetchPatiently(opsUrl + path, { ...init, headers })
  const text = await response.text()
  assert.ok(response.status < 300, text)
  return JSON.parse(text || '{}')
}

/** What the audit says of the code; where it knows no event, what holds for everybody and the job. */
async function sentenceOf(role: string, code: string): Promise<string> {
  const { now, events } = await ask<{ now: string | null; events: { sentence: string }[] }>(
    role,
    `/audit.json?q=${code}`,
  )
  const [event] = events
  if (event !== undefined) return event.sentence
  const job = await ask<{ state: string }>(role, `/v1/jobs/${code}`)
  return `${job.state}: ${now}`
}

/** Events are written about a second later. */
async function assertTold(code: string, expected: RegExp): Promise<void> {
  await until(async () => expected.test(await sentenceOf('viewer', code).catch(() => '')), { what: String(expected) })
}

const cases: { name: string; expected: RegExp; code: () => Promise<string> }[] = [
  {
    name: 'a wrong password',
    expected: /^Login: wrong password, from an unknown device, 1 of 2 before a pause$/,
    async code() {
      const refused = await api.login({ ...(await api.newAccount()), password: 'a wrong pass phrase' })
      assertProblem(refused, 401, 'invalid_credentials')
      return refused.requestId
    },
  },
  {
    name: 'a blocked network',
    expected: /^Request: refused: operators have blocked this network$/,
    async code() {
      const block = { network: '198.51.100.7', until: new Date(Date.now() + 60_000).toISOString(), reason: 'a test' }
      await ask('admin', '/v1/blocks', { method: 'POST', body: JSON.stringify(block) })
      const headers = { 'x-forwarded-for': '198.51.100.7' }
      const refused = await api.login(await api.newAccount(), { headers })
      assertProblem(refused, 403, 'network_blocked')
      return refused.requestId
    },
  },
  {
    name: 'an address that is not confirmed',
    expected: /^Login: the address of the account is not confirmed, from an unknown device/,
    async code() {
      const strict = await system.gateway({ ...mails.env, LOGIN_NEEDS_CONFIRMATION: 'true' })
      const refused = await strict.api.login(await api.newAccount())
      assertProblem(refused, 401, 'invalid_credentials')
      return refused.requestId
    },
  },
  {
    name: 'an expired ticket',
    expected: /^Login: the ticket has expired, from an unknown device$/,
    async code() {
      const hasty = await system.gateway({ ...env, TICKET_TTL_MS: '4000', LOGIN_WAIT_MS: '1000' })
      const account = await api.newAccount()
      const { requestId, body } = await whileFrozen(worker, async () => {
        const given = await hasty.api.login(account, respondAsync)
        expect(202, given)
        await until(async () => (await hasty.api.redeem(given.body.ticket, asIs)).status === 410)
        return given
      })
      // The ticket brings its code back, whoever redeems it.
      assert.equal((await api.redeem(body.ticket)).requestId, requestId)
      return requestId
    },
  },
]

test.each(cases)('$name is told by the support code', async ({ code, expected }) => {
  await assertTold(await code(), expected)
})

test('a paused queue is told by the support code', async () => {
  const account = await api.newAccount()
  await ask('support', '/queues/api/queues/passwords/pause', { method: 'PUT', body: '{}' })
  const given = await api.login(account, respondAsync)
  expect(202, given)
  await assertTold(given.requestId, /^[\w ]+: The queue is paused: everybody waits with a ticket/)
  await ask('support', '/queues/api/queues/passwords/resume', { method: 'PUT', body: '{}' })
})
