// The connections of a gateway to a Redis server, one for each purpose (CONTRIBUTING).
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { afterAll, test } from 'vitest'
import { expect, fetchPatiently, keepTicket, newCredentials } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { openSystem } from '../system.ts'

const redis = await startOwnRedis()
afterAll(() => redis.close())
const mails = await startMailServer()
const system = await openSystem()

/** All connections except the connection that asks. */
async function connections(): Promise<number> {
  const clients = String(await redis.command('CLIENT', 'LIST'))
    .trim()
    .split('\n')
  return clients.filter((client) => !/ cmd=client\b/.test(client)).length
}

for (const { what, env, count } of [
  { what: 'one for commands, one for replies and one for operators', env: {}, count: 3 },
  { what: 'with mail two more: one for its queue, and one that waits there', env: mails.env, count: 5 },
]) {
  test(`a gateway keeps ${count} connections to Redis: ${what}`, async () => {
    const gateway = await system.gateway({ REDIS_URL: redis.url, ...env })
    await until(async () => (await connections()) === count, { what: `${count} connections` })
    for (const path of ['/metrics', '/live.json', '/queues/api/queues'])
      assert.equal((await fetchPatiently(gateway.opsUrl + path)).status, 200, path)
    expect(202, await gateway.api.login(newCredentials(), keepTicket))
    assert.equal(await connections(), count)
    await gateway.close()
    await until(async () => (await connections()) === 0, { what: 'the end of its connections' })
  })
}
