// Every contender serves the same API, and each scenario measures: as little as shows that they work.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ApiAnswer,
  type ApiClient,
  createApiClient,
  redeemUntilAnswered,
} from '@spillway/infra/harness/api-client'
import { createNamespace } from '@spillway/infra/harness/namespace'
import type { Runs } from '@spillway/loadtests/results'
import { runScenarios, scenarios } from '@spillway/loadtests/run'
import { afterAll, describe, test } from 'vitest'
import { contenders } from '../../contenders/contenders.ts'
import { algorithms } from '../../contenders/hashing.ts'
import { Accounts } from '../../load/accounts.ts'

const services = await createNamespace()
afterAll(() => services.close())
const accounts = new Accounts(services.databaseUrl, 50)

/** What a request is answered in the end: a busy machine may cause a ticket or a 503 at any time. */
async function inTheEnd(client: ApiClient, send: () => Promise<ApiAnswer>): Promise<ApiAnswer> {
  const answer = await redeemUntilAnswered(await send(), client)
  if (answer.status !== 503) return answer
  await sleep(answer.retryAfterMs)
  return await inTheEnd(client, send)
}

// All at once: what they do is mostly starting.
describe('every contender serves the same API', { concurrent: true }, () => {
  for (const { name, start } of contenders) {
    test(name, async () => {
      const running = await start({ algorithm: 'argon2id', ...services })
      const client = createApiClient(running.url, { timeoutMs: 60_000 })
      try {
        for (const algorithm of algorithms) {
          await accounts.warmUp(running, algorithm, 0)
          const { email } = accounts.login(algorithm, 1)
          const wrong = await inTheEnd(client, () => client.login({ email, password: 'not the one it was' }))
          assert.equal(wrong.status, 401, algorithm)
        }
        const registration = accounts.registration()
        assert.equal((await inTheEnd(client, () => client.register(registration))).status, 201)
        const login = await inTheEnd(client, () => client.login(registration))
        assert.equal(login.status, 200)
        const { refreshToken } = login.body
        const logout = await inTheEnd(client, () => client.post('/v1/logout', { refreshToken }))
        assert.equal(logout.status, 204)
        assert.equal((await client.get('/healthz')).status, 200)
      } finally {
        client.close()
        await running.close()
      }
      assert.equal((await createApiClient(running.url).get('/healthz')).status, 0)
    })
  }
})

/** As `contender, variant`: enough to see that each kind of measurement works. */
const measured = [
  'spillway, argon2id',
  'spillway, a login with a ticket',
  'spillway, a second without logins',
  '@node-rs/argon2, argon2id, every processor',
  'crypto.pbkdf2, pbkdf2, alone',
  'crypto.scrypt, scrypt, alone',
]

test.each(scenarios)('$name measures', async ({ plan, ...scenario }) => {
  const setting = {
    databaseUrl: services.databaseUrl,
    redisUrl: services.redisUrl,
    accounts,
    contenders: undefined,
    durationS: 0.3,
    users: 5,
    warmUpMs: 0,
    bareHashMs: { bcrypt: 70, argon2id: 20 },
  }
  const some = () => plan(setting).filter(({ contender, variant }) => measured.includes(`${contender}, ${variant}`))
  assert.ok(some().length > 0)
  const results: Runs = { repeat: 1, scenarios: [] }
  await runScenarios([{ ...scenario, plan: some }], setting, results, new AbortController().signal)
  for (const { runs } of results.scenarios)
    for (const { contender, failure, figures } of runs) {
      assert.equal(failure, undefined, contender)
      assert.ok(Object.values(figures).every(Number.isFinite), `${contender}: ${JSON.stringify(figures)}`)
      assert.ok((figures.failedPercent ?? 0) < 100, `${contender}: everything failed`)
    }
})
