// From the support code that somebody was shown to the sentence that says why, in at most three calls.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { chromiumOptions, skipWithoutChromium } from '@spillway/infra/test/pictures'
import { chromium } from 'playwright-core'
import { afterAll, test } from 'vitest'
import { roles } from '../../src/operators/named.ts'
import { nameInRedis } from '../account.ts'
import { assertProblem, expect, respondAsync } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { openSystem, whileFrozen } from '../system.ts'

const mails = await startMailServer()
const system = await openSystem()
const worker = await system.worker()
const env = {
  ...{
    OPS_PROXIES: '127.0.0.1',
    OPS_GROUPS: roles.map((role) => `${role}:${role}`).join(','),
    TRUST_PROXY: '127.0.0.1',
  },
  ...{ GUESSES_PER_ACCOUNT: '20', TICKET_TTL_MS: '4000', LOGIN_WAIT_MS: '1000' },
}
const { api, opsUrl } = await system.gateway(env)
const { database } = system

const headersOf = (role: string) => ({ 'x-forwarded-user': 'anna', 'x-forwarded-groups': role })

async function ask<T>(role: string, path: string, init: RequestInit = {}): Promise<T> {
  const headers = { ...headersOf(role), 'content-type': 'application/json' }
  const response = await fetch(opsUrl + path, { ...init, headers })
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

const browser = skipWithoutChromium === false ? await chromium.launch(chromiumOptions) : undefined
afterAll(() => browser?.close())

/** What the page of the audit says of the code, where there is a browser. */
async function pageOf(role: string, code: string): Promise<string | undefined> {
  const page = await browser?.newPage({ extraHTTPHeaders: headersOf(role) })
  await page?.goto(`${opsUrl}/audit?q=${code}`)
  await page?.getByText(/the latest first|Nothing was found/).waitFor()
  if (page !== undefined && (await page.locator('#events tr').count()) === 0) await page.getByText('Its job').waitFor()
  const text = (await page?.locator('body').textContent()) ?? undefined
  await page?.close()
  return text
}

/** For each role the same, by the API and on the page. Events are written about a second later. */
async function assertTold(code: string, expected: RegExp): Promise<void> {
  const sentence = new RegExp(expected.source.replace(/^.*?: |\$$/g, ''))
  for (const role of roles) {
    await until(async () => expected.test(await sentenceOf(role, code).catch(() => '')), {
      what: `${role}: ${expected}`,
    })
    const page = await pageOf(role, code)
    if (page !== undefined) assert.match(page, sentence)
  }
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
    name: 'a challenge',
    expected: /^Rate limit: refused: a challenge must be solved, after too many wrong passwords for this account$/,
    async code() {
      const account = await api.newAccount()
      const counts = `${system.namespace.queuePrefix}:guesses:${nameInRedis(system, account.email)}`
      await system.redis.hset(counts, 'failures', 20)
      const refused = await api.login(account)
      assertProblem(refused, 429, 'challenge_required')
      return refused.requestId
    },
  },
  {
    name: 'a hash that no worker verifies',
    expected: /^Login: no worker verifies the stored hash of this account, from an unknown device/,
    async code() {
      const account = await api.newAccount()
      await database.user.update({ where: { email: account.email }, data: { passwordHash: '$unknown$1$x' } })
      const refused = await api.login(account)
      assertProblem(refused, 401, 'invalid_credentials')
      return refused.requestId
    },
  },
  {
    name: 'a disabled account',
    expected: /^Login: the account is disabled, from an unknown device/,
    async code() {
      const account = await api.newAccount()
      await database.user.update({ where: { email: account.email }, data: { disabledAt: new Date() } })
      const refused = await api.login(account)
      assertProblem(refused, 401, 'invalid_credentials')
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
      const account = await api.newAccount()
      const { requestId, body } = await whileFrozen(worker, async () => {
        const given = await api.login(account, respondAsync)
        expect(202, given)
        await until(async () => (await api.redeem(given.body.ticket)).status === 410)
        return given
      })
      // The ticket brings its code back, whoever redeems it.
      assert.equal((await api.redeem(body.ticket)).requestId, requestId)
      return requestId
    },
  },
]

test.each(cases)('$name is told by the support code, to every role', async ({ code, expected }) => {
  await assertTold(await code(), expected)
})

test('a paused queue is told by the support code, to every role', async () => {
  const account = await api.newAccount()
  await ask('support', '/queues/api/queues/passwords/pause', { method: 'PUT', body: '{}' })
  const given = await api.login(account, respondAsync)
  expect(202, given)
  await assertTold(given.requestId, /^[\w ]+: The queue is paused: everybody waits with a ticket/)
  await ask('support', '/queues/api/queues/passwords/resume', { method: 'PUT', body: '{}' })
})
