// Gateways and workers tell of each Redis server that may evict keys: log, metric, readiness.
import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { type LogLine, type NodeProcess, startProcess } from '@spillway/infra/processes/node-process'
import { listening } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { gatewayProgram, type Program, workerProgram } from '@spillway/infra/start/member'
import { evictionNotice } from '@spillway/infra/start/screen'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { connectRedis } from '@spillway/queue/redis/connect'
import { afterAll, type TestContext, test } from 'vitest'
import { openSystem } from '../system.ts'

const servers = [await startOwnRedis(), await startOwnRedis()] as const
afterAll(() => Promise.all(servers.map((server) => server.close())))
const system = await openSystem()

interface Member {
  url: string
  opsUrl: string
  logs: readonly LogLine[]
  waitForLog: NodeProcess['waitForLog']
}

/** Starts a gateway or worker as deployed, until the end of the test. */
async function start(t: TestContext, program: Program, REDIS_URL: string): Promise<Member> {
  const started = startProcess({ entry: program.entry, env: { ...system.environment, REDIS_URL } })
  t.onTestFinished(() => started.close())
  const { url, opsUrl } = await started.waitForLog(({ msg }) => msg === program.readyMessage)
  return { url: String(url), opsUrl: String(opsUrl), logs: started.logs, waitForLog: started.waitForLog }
}

/** Runs one command as the default user. */
async function command(url: string, ...args: [string, ...string[]]): Promise<void> {
  const redis = connectRedis(url, 'consumer')
  const [name, ...rest] = args
  await redis.call(name, ...rest)
  redis.disconnect()
}

const setPolicy = (n: 0 | 1, policy: string) => command(servers[n].url, 'CONFIG', 'SET', 'maxmemory-policy', policy)

async function seriesOf(opsUrl: string): Promise<string[]> {
  const page = await (await fetch(`${opsUrl}/metrics`)).text()
  return page.split('\n').filter((line) => line.startsWith('spillway_redis_evicts'))
}

async function evictionOf(gateway: Member): Promise<unknown> {
  const { eviction } = JSON.parse(await (await fetch(`${gateway.url}/readyz`)).text())
  return eviction
}

const warned = ({ logs }: Member, policy: string) =>
  logs.filter((line) => String(line.msg).startsWith('redis may evict') && line.policy === policy)

for (const policy of ['volatile-lru', 'allkeys-lru']) {
  test(`one server with ${policy} is told of, and the gateway stays ready`, async (t) => {
    await setPolicy(0, policy)
    t.onTestFinished(() => setPolicy(0, 'noeviction'))
    const REDIS_URL = servers[0].url
    const [gateway, worker] = await Promise.all([
      start(t, gatewayProgram, REDIS_URL),
      start(t, workerProgram, REDIS_URL),
    ])
    await until(async () => (await evictionOf(gateway)) === 'possible')
    assert.equal((await fetch(`${gateway.url}/readyz`)).status, 200)
    for (const member of [gateway, worker]) {
      await until(() => warned(member, policy).length === 1)
      assert.equal(warned(member, policy)[0]?.level, 'warn')
      assert.deepEqual(await seriesOf(member.opsUrl), ['spillway_redis_evicts 1'])
    }
    assert.match(await evictionNotice(gateway.opsUrl), /^The Redis server may evict keys: .* noeviction\.$/)
  })
}

test('of several servers each is told of by its address, and one without eviction is not', async (t) => {
  await setPolicy(1, 'allkeys-lfu')
  t.onTestFinished(() => setPolicy(1, 'noeviction'))
  const REDIS_URL = servers.map(({ url }) => url).join(' ')
  const [gateway, worker] = await Promise.all([start(t, gatewayProgram, REDIS_URL), start(t, workerProgram, REDIS_URL)])
  const [first, second] = servers.map(({ url }) => new URL(url).host)
  const expected = [`spillway_redis_evicts{redis="${first}"} 0`, `spillway_redis_evicts{redis="${second}"} 1`]
  for (const member of [gateway, worker]) {
    await until(async () => (await seriesOf(member.opsUrl)).length === 2)
    assert.deepEqual(await seriesOf(member.opsUrl), expected)
    await until(() => warned(member, 'allkeys-lfu').length > 0)
    assert.deepEqual(
      warned(member, 'allkeys-lfu').map(({ redis }) => redis),
      [second],
    )
  }
  assert.equal(await evictionOf(gateway), 'possible')
  assert.match(await evictionNotice(gateway.opsUrl), new RegExp(`^The Redis server ${second} may evict keys`))
})

test('a server with noeviction is not told of', async (t) => {
  const gateway = await start(t, gatewayProgram, servers[0].url)
  await until(async () => (await seriesOf(gateway.opsUrl)).length === 1)
  assert.deepEqual(await seriesOf(gateway.opsUrl), ['spillway_redis_evicts 0'])
  assert.equal(await evictionOf(gateway), undefined)
  assert.equal(await evictionNotice(gateway.opsUrl), '')
})

for (const refusesConfig of [true, false]) {
  test(`where INFO hides the policy, CONFIG is ${refusesConfig ? 'refused, and that is said' : 'asked'}`, async (t) => {
    await setPolicy(0, 'volatile-lru')
    t.onTestFinished(() => setPolicy(0, 'noeviction'))
    const rights = ['reset', 'on', '>secret', '~*', '&*', '+@all', ...(refusesConfig ? ['-@admin', '-@dangerous'] : [])]
    await command(servers[0].url, 'ACL', 'SETUSER', 'guest', ...rights, '+info')
    const hiding = await startHidingProxy(servers[0].url)
    t.onTestFinished(() => hiding.close())
    const REDIS_URL = `redis://guest:secret@127.0.0.1:${hiding.port}`
    const gateway = await start(t, gatewayProgram, REDIS_URL)
    const expected = refusesConfig ? 'unknown' : 'possible'
    await until(async () => (await evictionOf(gateway)) === expected)
    assert.deepEqual(await seriesOf(gateway.opsUrl), [`spillway_redis_evicts ${refusesConfig ? 'Nan' : '1'}`])
    const warning = refusesConfig ? /^redis does not tell whether it evicts/ : /^redis may evict/
    await gateway.waitForLog(({ level, msg }) => level === 'warn' && warning.test(String(msg)))
    assert.equal(gateway.logs.filter(({ level, msg }) => level === 'warn' && /^redis/.test(String(msg))).length, 1)
    if (refusesConfig) assert.match(await evictionNotice(gateway.opsUrl), /^The Redis server does not tell/)
  })
}

/** A way to Redis on which INFO has no `maxmemory_policy`, as at some services. */
async function startHidingProxy(redisUrl: string) {
  const { hostname, port } = new URL(redisUrl)
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    client.pipe(upstream)
    upstream.on('data', (bytes) => {
      const text = bytes.toString('latin1').replace('maxmemory_policy:', 'xaxmemory_policy:')
      client.write(Buffer.from(text, 'latin1'))
    })
    client.on('close', () => upstream.destroy()).on('error', () => undefined)
    upstream.on('close', () => client.destroy()).on('error', () => undefined)
  })
  const ownPort = await listening(server)
  return { port: ownPort, close: () => new Promise<void>((resolve) => void server.close(() => resolve())) }
}
