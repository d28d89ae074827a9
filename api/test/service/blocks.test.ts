// Blocked networks: refused by every gateway within a second, from memory, whatever Redis forgets.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { redisCommand } from '@spillway/infra/services/redis'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { parseKeyring } from '@spillway/queue/client'
import { afterAll, test } from 'vitest'
import { accountNamesOf, accountOfEmail } from '../../src/limits/limits.ts'
import { asIs, assertProblem, type Client, expect, newCredentials } from '../client.ts'
import { Operator, told } from '../operators.ts'
import { openSystem, readiness } from '../system.ts'

const server = await startOwnRedis()
afterAll(() => server.close())
const system = await openSystem()
const env = { REDIS_URL: server.url, TRUST_PROXY: '127.0.0.1', GUESSES_PER_ACCOUNT: '20' }
await system.worker({ REDIS_URL: env.REDIS_URL })
const [here, there] = await Promise.all([system.gateway(env), system.gateway(env)])
const operator = new Operator(here.opsUrl)
const account = await here.api.newAccount()

const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
const statusFrom = async (api: Client, address: string) => (await api.login(account, from(address))).status
async function becomes(api: Client, address: string, status: number): Promise<void> {
  await until(async () => (await statusFrom(api, address)) === status, { what: `${status} from ${address}` })
}

test('a block holds at the gateway that made it at once and at the other at its next reading, until it is lifted', async () => {
  assert.deepEqual(told(200, await operator.block('198.51.100.0/24')), { changed: 1 })
  for (const address of ['198.51.100.7', '198.51.100.7, 127.0.0.1:4321'])
    assertProblem(await here.api.login(account, from(address)), 403, 'network_blocked')
  await becomes(there.api, '198.51.100.7', 403)
  assert.equal(await statusFrom(there.api, '198.51.101.7'), 200)
  for (const path of ['/healthz', '/readyz', '/v1/line'])
    await until(async () => (await there.api.call('GET', path, from('198.51.100.7'))).status === 200, { what: path })
  const refused = await there.api.login(newCredentials(), from('198.51.100.8'))
  const find = () => system.database.auditEvent.findMany({ where: { requestId: refused.requestId } })
  await until(async () => (await find()).length === 1)
  const [event] = await find()
  assert.deepEqual([event?.event, event?.outcome, event?.address], ['rate_limit', 'network_blocked', '198.51.100.8'])

  const { blocks } = told(200, await new Operator(there.opsUrl).call('GET', '/v1/blocks'))
  assert.deepEqual(blocks.map(({ network, operator, reason }) => [network, operator, reason])[0], [
    '198.51.100.0/24',
    'operator',
    'asked by telephone',
  ])
  assert.deepEqual(told(200, await operator.unblock('198.51.100.0/24')), { changed: 1 })
  assert.deepEqual(told(200, await operator.unblock('198.51.100.0/24')), { changed: 0 })
  await becomes(there.api, '198.51.100.7', 200)
})

test('a block survives a restart of Redis with the loss of its data, and a new gateway', async () => {
  told(200, await operator.block('203.0.113.9'))
  await becomes(there.api, '203.0.113.9', 403)
  await redisCommand(server.url, 'FLUSHALL')
  await server.kill()
  await server.start()
  for (const { api } of [here, there])
    assertProblem(await api.login(account, from('203.0.113.9')), 403, 'network_blocked')
  // Where the machine is too slow to read them at the start, a gateway reads them a moment later.
  await until(async () => (await statusFrom((await system.gateway(env)).api, '203.0.113.9')) === 403)
  // Events are written about a second later.
  const where = { event: 'block_network', address: '203.0.113.9' } as const
  await until(async () => (await system.database.auditEvent.count({ where })) > 0)
  const [event, ...others] = await system.database.auditEvent.findMany({ where })
  assert.deepEqual([event?.operator, event?.reason, others], ['operator', 'asked by telephone', []])
})

test('deleting a person is refused while Redis is down, and leaves no key once it is up again', async () => {
  for (const { api } of [here, there]) await until(async () => (await readiness(api.url)).status === 'ok')
  const { email, ...other } = await here.api.newAccount()
  expect(401, await here.api.login({ email, ...other, password: 'wrong' }))
  expect(401, await there.api.login({ email, ...other, password: 'wrong' }))
  const { id } = told(200, await operator.find(email))
  const names = accountNamesOf(accountOfEmail(email), parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? ''))
  const kept = async () => {
    const keys = await redisCommand(server.url, 'EVAL', "return table.concat(redis.call('KEYS', '*'), ' ')", '0')
    return names.filter((name) => String(keys).includes(name))
  }
  assert.equal((await kept()).length, 1)
  const deleted = () => operator.on(id, 'delete', {}, asIs)
  await server.kill()
  await until(async () => (await deleted()).status === 503, { what: 'a refusal' })
  assertProblem(await deleted(), 503, 'unavailable')
  assertProblem(await operator.call('GET', '/v1/jobs/of-no-request', asIs), 503, 'unavailable')
  assert.equal((await fetch(`${here.opsUrl}/queues/api/queues`)).status, 503)
  await server.start()
  await until(async () => (await deleted()).status === 200, { what: 'the deletion' })
  assert.deepEqual(await kept(), [])
  assertProblem(await operator.find(id), 404, 'account_not_found')
})

test('rows that are no networks, or have no end or no beginning, stop no other block', async () => {
  await system.database.$executeRaw`
    INSERT INTO blocks (network, until, created_at, operator, reason) VALUES
      ('example.test', now() + interval '1 minute', '-infinity', 'sql', 'x'), ('192.0.2.200', 'infinity', now(), 'sql', 'x')`
  told(200, await operator.block('203.0.113.30'))
  await becomes(there.api, '203.0.113.30', 403)
  await becomes(there.api, '192.0.2.200', 403)
  const { blocks } = told(200, await operator.call('GET', '/v1/blocks'))
  for (const network of ['example.test', '192.0.2.200', '203.0.113.30'])
    assert.ok(
      blocks.some((block) => block.network === network),
      network,
    )
  await system.database.$executeRaw`DELETE FROM blocks WHERE operator = 'sql'`
})

test('a thousand networks are blocked, and no more: each request is compared with all', async () => {
  await system.database.block.deleteMany()
  await system.database.$executeRaw`
    INSERT INTO blocks (network, until, operator, reason)
    SELECT '100.64.' || n / 256 || '.' || n % 256, now() + interval '1 hour', 'script', 'a list' FROM generate_series(1, 1000) AS n`
  assertProblem(await operator.block('192.0.2.200'), 422, 'invalid_request')
  assert.deepEqual(told(200, await operator.block('100.64.0.1')), { changed: 1 })
  assert.deepEqual(told(200, await operator.unblock('100.64.0.2')), { changed: 1 })
  assert.deepEqual(told(200, await operator.block('192.0.2.200')), { changed: 1 })
  await system.database.block.deleteMany()
})

test.each(['a\0b', 'a\ud800b', 'a\nb', '\u009f'])('a reason is text without control characters: %j', async (reason) => {
  const body = { network: '192.0.2.1', until: new Date(Date.now() + 60_000).toISOString(), reason }
  assertProblem(await operator.call('POST', '/v1/blocks', { body }), 422, 'invalid_request')
})

test.each(['::ffff:0:0/96', '::/20', '::ffff:192.0.2.0/120'])(
  '%s is refused: it would block IPv4 clients',
  async (network) => {
    assertProblem(await operator.block(network), 422, 'invalid_request')
  },
)

test('a block ends by itself', async () => {
  told(200, await operator.block('203.0.113.20'))
  await becomes(there.api, '203.0.113.20', 403)
  await system.database.$executeRaw`
    UPDATE blocks SET until = now() + interval '1 second' WHERE network = '203.0.113.20'`
  await becomes(there.api, '203.0.113.20', 200)
})

test.each([
  ['192.0.2.1', '192.0.2.1', ['192.0.2.1', '::ffff:192.0.2.1', '192.0.2.1:5000']],
  ['192.0.2.77/28', '192.0.2.64/28', ['192.0.2.64', '192.0.2.79']],
  ['2001:db8:9::3/128', '2001:db8:9::3/128', ['2001:db8:9::3']],
  ['2001:db8:1:2::3', '2001:db8:1:2::/64', ['2001:db8:1:2::3', '2001:DB8:1:2:ffff::1', '[2001:db8:1:2::9]:443']],
])('%s blocks %s', async (network, canonical, addresses) => {
  told(200, await operator.block(network))
  const { blocks } = told(200, await operator.call('GET', '/v1/blocks'))
  assert.ok(
    blocks.some((block) => block.network === canonical),
    JSON.stringify(blocks),
  )
  for (const address of addresses) assert.equal(await statusFrom(here.api, address), 403, address)
  assert.equal(await statusFrom(here.api, '192.0.3.1'), 200)
  assert.deepEqual(told(200, await operator.unblock(canonical)), { changed: 1 })
  const found = async () => expect(200, await operator.call('GET', `/audit.json?event=unblock_network&q=${canonical}`))
  await until(async () => Object(await found()).events.length === 1, { what: 'the event of the block' })
  for (const address of addresses) assert.equal(await statusFrom(here.api, address), 200, address)
})

test.each(['', '0.0.0.0/0', '::/0', '1.2.3.4/33', 'example.test', '::1%lo'])('no network: %j', async (network) => {
  assertProblem(await operator.block(network), 422, 'invalid_request')
})

test('a time that has passed, or is no time, is refused', async () => {
  assertProblem(await operator.block('192.0.2.1', Date.now() - 1), 422, 'invalid_request')
  for (const until of ['tomorrow', '2001-12-31T23:59:60Z', '0001-01-01T00:00:00Z']) {
    const body = { network: '192.0.2.1', until, reason: 'x' }
    assertProblem(await operator.call('POST', '/v1/blocks', { body }), 422, 'invalid_request')
  }
})

test.each(['127.0.0.1', '127.0.0.0/8', '::ffff:127.0.0.1'])(
  '%s, a proxy of TRUST_PROXY, is not blocked',
  async (network) => {
    assertProblem(await operator.block(network), 422, 'invalid_request')
  },
)
