// Gateways on two Redis servers: tickets, limits, what operators see, and lists that change.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { closedGate } from '@spillway/infra/rig/namespace'
import { redisCommand } from '@spillway/infra/services/redis'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { parseKeyring } from '@spillway/queue/queue-client'
import { parseRedisServers } from '@spillway/queue/redis/servers'
import { Redis } from 'ioredis'
import { afterAll, type TestContext, test } from 'vitest'
import { accountNameOf, accountOfEmail, inOrderOf } from '../../src/plugins/counts.ts'
import { accountWithHash, slowAccount } from '../account.ts'
import { assertProblem, atOnce, type Client, expect, keepTicket, newCredentials, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

const servers = [await startOwnRedis(), await startOwnRedis()] as const
const [one, two] = [servers[0].url, servers[1].url]
const both = `${one} ${two}`
afterAll(() => Promise.all(servers.map((server) => server.close())))
const system = await openSystem()
await system.worker({ REDIS_URL: both, WORKER_CONCURRENCY: '4', SPILLWAY_TEST_HASHES: 'true' })

interface Readiness {
  status: string
  redis?: { usable: number; of: number }
}
async function readiness(url: string): Promise<Readiness> {
  return JSON.parse(await (await fetch(`${url}/readyz`)).text())
}

async function gatewayOfBoth(env: NodeJS.ProcessEnv = {}) {
  const gateway = await system.gateway({ REDIS_URL: both, ...env })
  await until(async () => (await readiness(gateway.url)).redis?.usable === 2, { what: 'both in use' })
  return gateway
}

/** Ends a server until the test is over, or until what this resolves with is called. */
async function whileLost(t: TestContext, fault: 'SIGKILL' | 'SIGSTOP', server = servers[1]) {
  let isLost = true
  const back = async () => {
    if (!isLost) return
    isLost = false
    if (fault === 'SIGSTOP') server.signal('SIGCONT')
    else await server.start()
  }
  t.onTestFinished(back)
  if (fault === 'SIGSTOP') server.signal('SIGSTOP')
  else await server.kill()
  return back
}

/** Tickets of jobs in each of the two, by their order. */
async function ticketsInEach(api: Client, storedHash = '$spillway-wait$1$'): Promise<[string, string]> {
  const jobKey = (ticket: string) => `${system.namespace.queuePrefix}:passwords:${ticket.split('.')[0]}`
  const looking = [new Redis(one), new Redis(two)]
  const found: (string | undefined)[] = [undefined, undefined]
  try {
    while (found.includes(undefined)) {
      const { ticket } = expect(202, await api.login(await accountWithHash(system.database, storedHash), respondAsync))
      const held = await Promise.all(looking.map((redis) => redis.exists(jobKey(ticket))))
      found[held.indexOf(1)] ??= ticket
    }
  } finally {
    for (const redis of looking) redis.disconnect()
  }
  return [found[0] ?? '', found[1] ?? '']
}

test('readiness says how many can be used, metrics which, and neither with a password', async () => {
  const { url, opsUrl } = await gatewayOfBoth()
  assert.deepEqual((await readiness(url)).redis, { usable: 2, of: 2 })
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
  for (const { address } of parseRedisServers(both))
    assert.ok(metrics.includes(`spillway_redis_connected{redis="${address}"} 1`))
  assert.doesNotMatch(metrics, /secret/)
})

for (const fault of ['SIGKILL', 'SIGSTOP'] as const) {
  test(`${fault} of one in the middle of logins: none fails or waits; then it is used again`, async (t) => {
    const { api } = await gatewayOfBoth()
    const account = await slowAccount(system.database, 50)
    // One that waited for the lost server would get a ticket.
    const answered = async () => expect(200, await api.login(account))
    // The first logins open the connections to PostgreSQL, and may be refused on a busy machine.
    const first = () => atOnce(20, () => api.login(account))
    await until(async () => (await first()).every(({ status }) => status === 200))
    const held = Array.from({ length: 20 }, answered)
    const back = await whileLost(t, fault)
    await Promise.all(held)
    for (let round = 0; round < 20; round += 1) await Promise.all([answered(), answered(), answered()])
    assert.deepEqual(await readiness(api.url).then(({ status, redis }) => [status, redis?.usable]), ['ok', 1])
    await back()
    await until(async () => (await readiness(api.url)).redis?.usable === 2)
    await ticketsInEach(api)
  })
}

test('a ticket is answered at any gateway of both, whatever the order of its list, and once', async () => {
  const here = await gatewayOfBoth()
  const there = await gatewayOfBoth({ REDIS_URL: `${two}\n${one}` })
  for (const ticket of await ticketsInEach(here.api)) {
    await until(async () => (await there.api.redeem(ticket, keepTicket)).status === 200)
    assertProblem(await here.api.redeem(ticket), 409, 'ticket_used')
  }
})

test('a ticket of a frozen Redis is pending, and answered when it is back within the life of the ticket', async (t) => {
  const { api } = await gatewayOfBoth()
  const [, ticket] = await ticketsInEach(api)
  const back = await whileLost(t, 'SIGSTOP')
  await until(async () => (await readiness(api.url)).redis?.usable === 1)
  expect(202, await api.redeem(ticket, keepTicket))
  await back()
  await until(async () => (await api.redeem(ticket, keepTicket)).status === 200)
})

test('rolling from one to two and back: a ticket of one is good at two, and of a drained one at all that know it', async () => {
  const onOne = await system.gateway({ REDIS_URL: one })
  const next = await system.gateway({ REDIS_URL: `${one} drain:${two}` })
  const onBoth = await gatewayOfBoth()
  const ofOne = expect(202, await onOne.api.login(await slowAccount(system.database, 1), respondAsync)).ticket
  await until(async () => (await onBoth.api.redeem(ofOne, keepTicket)).status === 200)
  const [first, second] = await ticketsInEach(onBoth.api)
  await until(async () => (await onOne.api.redeem(first, keepTicket)).status === 200)
  // One that does not know it says nothing wrong; another gateway answers.
  expect(202, await onOne.api.redeem(second, respondAsync))
  await until(async () => (await next.api.redeem(second, keepTicket)).status === 200)
})

test('a limit outlives the loss of the Redis that counts it, at most once more for each Redis', async (t) => {
  const max = 5
  const { api } = await gatewayOfBoth({ LIMIT_PER_ACCOUNT: String(max) })
  const guess = newCredentials()
  const countOf = async (): Promise<number> => {
    let allowed = 0
    while ((await api.login(guess)).status !== 429) allowed += 1
    return allowed
  }
  assert.equal(await countOf(), max)
  const keyring = parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? '')
  const account = accountNameOf(accountOfEmail(guess.email), keyring)
  const key = `${system.namespace.queuePrefix}:limit:account:${account}`
  const [home] = inOrderOf(key, parseRedisServers(both))
  const server = servers[parseRedisServers(both).findIndex(({ id }) => id === home?.id)] ?? assert.fail()
  const back = await whileLost(t, 'SIGKILL', server)
  await until(async () => (await readiness(api.url)).redis?.usable === 1)
  assert.equal(await countOf(), max, 'the other counts from the beginning')
  assert.equal(await countOf(), 0)
  await back()
  await until(async () => (await readiness(api.url)).redis?.usable === 2)
  assert.equal(await countOf(), 0, 'it came back with its counts')
})

test('the board has a queue for each, and the live page and the metrics add them up', async (t) => {
  const { api, opsUrl } = await gatewayOfBoth()
  const read = async (path: string) => JSON.parse(await (await fetch(opsUrl + path)).text())
  await ticketsInEach(api, (await closedGate(t)).storedHash)
  const names = parseRedisServers(both).map(({ address }) => `${address} passwords`)
  await until(async () => {
    const [live, ...boards] = await Promise.all([
      read('/live.json'),
      ...names.map((name) => read(`/queues/api/queues?activeQueue=${encodeURIComponent(name)}&status=active`)),
    ])
    assert.equal(live.workers.length, 1)
    const jobs = boards.map((board, n) => {
      const shown = board.queues.map(({ name }: { name: string }) => name)
      assert.deepEqual(shown, names)
      return board.queues[n].jobs.length
    })
    return jobs.every((count) => count > 0) && live.queue.active >= jobs.length
  })
})

test('both lost: 503, as with one; and well again when one is back', async (t) => {
  const { api } = await gatewayOfBoth()
  const credentials = await api.newAccount()
  const backs = await Promise.all(servers.map((server) => whileLost(t, 'SIGKILL', server)))
  await until(async () => (await readiness(api.url)).status === 'failing')
  assertProblem(await api.login(credentials), 503, 'unavailable')
  await backs[0]?.()
  await until(async () => (await api.login(credentials)).status === 200)
})

// The last: its jobs keep the workers busy, as long as no verdict may come.
test('a ticket of a lost Redis is 410 ticket_lost: after a moment without it, and at once when it is back empty', async (t) => {
  const { api } = await gatewayOfBoth()
  const [kept, lost] = await ticketsInEach(api, '$spillway-wait$60000$')
  const back = await whileLost(t, 'SIGKILL')
  await until(async () => {
    const answer = await api.redeem(lost, respondAsync)
    if (answer.status === 202) return false
    assertProblem(answer, 410, 'ticket_lost')
    return true
  })
  expect(202, await api.redeem(kept, respondAsync))
  await back()
  await redisCommand(two, 'FLUSHALL')
  await until(async () => (await readiness(api.url)).redis?.usable === 2)
  assertProblem(await api.redeem(lost, respondAsync), 410, 'ticket_lost')
})
