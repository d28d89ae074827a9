// What a stranger learns of an account from an answer: nothing, whatever is sent or stored.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { accountWithHash, delayStrangers, nameInRedis } from '../account.ts'
import { type Answer, type Credentials, newCredentials, respondAsync } from '../client.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const { api } = await system.gateway({ GUESSES_PER_ACCOUNT: '10' })

/** Addresses of one length, so that what is made from them has one too. */
const accounts: Record<string, () => Promise<Credentials>> = {
  unknown: async () => newCredentials(),
  'of today': () => api.newAccount(),
  'with bcrypt': () => accountWithHash(system.database, '$2b$04$aFu/6hE6KsmKW6dioDx0/.IMW4l40x6esYzs8A1UrxgTRci6vATWW'),
  'with a hash that nothing verifies': () => accountWithHash(system.database, '$unsupported$1$damaged'),
  'that costs too much': () => accountWithHash(system.database, `$2b$31$${'a'.repeat(53)}`),
}

const passwords: Record<string, string> = {
  wrong: 'a wrong password',
  empty: '',
  'of a byte': 'x',
  'over-long': 'x'.repeat(1_025),
  'as long as can be': 'x'.repeat(1_024),
  'longer than bcrypt reads': 'x'.repeat(200),
}

/** What can be seen of an answer; what differs for everyone each time is seen by its length. */
function seen({ status, headers, body: { ticket, ...body } }: Answer) {
  const varying = ['date', 'x-request-id', 'ratelimit-remaining', 'ratelimit-reset', 'retry-after']
  // Numbers of the queue have more digits or fewer.
  if (status === 202) varying.push('content-length')
  return {
    status,
    headers: [...headers].map(([name, value]) => (varying.includes(name) ? name : `${name}: ${value}`)).sort(),
    body: { ...body, number: typeof body.number, retryAfter: undefined, position: undefined, eta: undefined },
    ticket: ticket?.length,
  }
}

/** The same for every account as for one that there is not. */
async function assertAlike(attempt: (credentials: Credentials) => Promise<Answer[]>): Promise<void> {
  const told = await Promise.all(
    Object.entries(accounts).map(async ([kind, account]) => {
      const answers = await attempt(await account())
      return { kind, answers: answers.map(seen) }
    }),
  )
  const [unknown, ...others] = told
  assert.ok(unknown !== undefined && unknown.answers.length > 0)
  for (const { kind, answers } of others) assert.deepEqual(answers, unknown.answers, `an account ${kind}`)
}

for (const [kind, password] of Object.entries(passwords)) {
  test(`a password that is ${kind} is answered the same for every account, held or by ticket`, async () => {
    await assertAlike(async ({ email }) => {
      const held = await api.login({ email, password })
      const deferred = await api.login({ email, password }, respondAsync)
      return deferred.status === 202 ? [held, deferred, await api.redeem(deferred.body.ticket)] : [held, deferred]
    })
  })
}

test('an account on which strangers failed too often is answered the same', async () => {
  await assertAlike(async ({ email }) => {
    const guess = { email, password: 'a guess' }
    const failed = await api.login(guess)
    await until(async () => (await failuresOf(email)) === 1, { what: 'the failure counted' })
    await delayStrangers(system, email)
    const refused = await api.login(guess)
    assert.equal(refused.body.code, 'too_many_requests')
    return [failed, refused]
  })
})

async function failuresOf(email: string): Promise<number> {
  const key = `${system.namespace.queuePrefix}:guesses:${nameInRedis(system, email)}`
  return Number(await system.redis.hget(key, 'failures'))
}
