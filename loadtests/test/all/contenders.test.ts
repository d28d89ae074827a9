import assert from 'node:assert/strict'
import { childrenOf, processorTime } from '@spillway/infra/processes/processor-time'
import { until } from '@spillway/infra/processes/until'
import { createApiClient } from '@spillway/infra/rig/api-client'
import { createNamespace, type Namespace } from '@spillway/infra/rig/namespace'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { contenders } from '../../contenders/contenders.ts'
import { algorithms } from '../../contenders/hashing.ts'
import { Accounts } from '../../load/accounts.ts'

const once = { logins: 1, atMostMs: 1_000 }

// All at once: what they do is mostly starting.
describe('every contender serves the same API', { concurrent: true }, () => {
  let services: Namespace
  let accounts: Accounts

  beforeAll(async () => {
    services = await createNamespace()
    accounts = new Accounts(services.databaseUrl, 50)
  })
  afterAll(() => services.close())

  for (const contender of contenders) {
    test(contender.name, async () => {
      const running = await contender.start({ cores: undefined, algorithm: 'argon2id', services })
      const client = createApiClient(running.url, { timeoutMs: 60_000 })
      try {
        await accounts.warmUp(running, 'token', once)
        for (const algorithm of algorithms) {
          await accounts.warmUp(running, algorithm, once)

          const { email } = accounts.login(algorithm, 1)
          const wrong = await client.login({ email, password: 'not the one it was' })
          assert.equal(wrong.status, 401, algorithm)
        }
        const registration = accounts.registration()
        assert.equal((await client.register(registration)).status, 201)
        const login = await client.login(registration)
        assert.equal(login.status, 200)
        const { refreshToken } = login.body
        assert.equal((await client.post('/v1/logout', { refreshToken })).status, 204)
        assert.equal((await client.get('/healthz')).status, 200)
        assert.ok(running.parts.some(({ role }) => role === 'api'))
      } finally {
        client.close()
        await running.close()
      }
      await until(() => running.parts.every(({ pid }) => processorTime(pid) === undefined), {
        what: 'the end of its processes',
      })
    })
  }

  test.skipIf(process.platform !== 'linux')('processes that a contender started end with it', async () => {
    await accounts.seed('bcrypt')
    const scriptPerCompare = contenders.find(({ name }) => name === 'script-per-compare')
    assert.ok(scriptPerCompare)
    const running = await scriptPerCompare.start({ cores: undefined, algorithm: 'bcrypt', services })
    const api = running.parts.find(({ role }) => role === 'api')?.pid ?? 0
    const client = createApiClient(running.url)
    const login = client.login(accounts.login('bcrypt', 1))
    // Stopped, so that it does not end by itself.
    const script = await until(() => childrenOf(api).find((pid) => process.kill(pid, 'SIGSTOP')))
    await running.close()
    try {
      await until(() => processorTime(script) === undefined, { what: 'the end of the script' })
    } finally {
      if (processorTime(script) !== undefined) process.kill(script, 'SIGKILL')
    }
    await login
    client.close()
  })
})
