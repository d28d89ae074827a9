// Gateways and workers tell whether Redis may evict keys: log and metric.
import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { type LogLine, type NodeProcess, startProcess } from '@spillway/infra/processes/node-process'
import { listening } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { gatewayProgram, type Program, workerProgram } from '@spillway/infra/start/member'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { connectRedis } from '@spillway/queue/redis/connect'
import { afterAll, type TestContext, test } from 'vitest'
import { openSystem } from '../system.ts'

const server = await startOwnRedis()
afterAll(() => server.close())
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

const setPolicy = (policy: string) => command(server.url, 'CONFIG', 'SET', 'maxmemory-policy', policy)

async function seriesOf(opsUrl: string): Promise<string[]> {
  const page = await (await fetch(`${opsUrl}/metrics`)).text()
  return page.split('\n').filter((line) => line.startsWith('spillway_redis_evicts'))
}

const warned = ({ logs }: Member, policy: string) =>
  logs.filter((line) => String(line.msg).startsWith('redis may evict') && line.policy === policy)

test('the log names a server that may evict keys, and the gateway stays ready', async (t) => {
  const policy = 'volatile-lru'
  await setPolicy(policy)
  t.onTestFinished(() => setPolicy('noeviction'))
  const REDIS_URL = server.url
  const [gateway, worker] = await Promise.all([start(t, gatewayProgram, REDIS_URL), start(t, workerProgram, REDIS_URL)])
  await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200)
  for (const member of [gateway, worker]) {
    await until(() => warned(member, policy).length === 1)
    assert.equal(warned(member, policy)[0]?.level, 'warn')
    assert.deepEqual(await seriesOf(member.opsUrl), ['spillway_redis_evicts 1'])
  }
})

test('the log does not name a server with noeviction', async () => {
  const gateway = await system.gateway({ REDIS_URL: server.url })
  await until(async () => (await seriesOf(gateway.opsUrl)).length === 1)
  assert.deepEqual(await seriesOf(gateway.opsUrl), ['spillway_redis_evicts 0'])
})

for (const refusesConfig of [true, false]) {
  test(`where INFO hides the policy, CONFIG is ${refusesConfig ? 'refused, and that is said' : 'asked'}`, async (t) => {
    await setPolicy('volatile-lru')
    t.onTestFinished(() => setPolicy('noeviction'))
    const rights = ['reset', 'on', '>secret', '~*', '&*', '+@all', ...(refusesConfig ? ['-@admin', '-@dangerous'] : [])]
    await command(server.url, 'ACL', 'SETUSER', 'guest', ...rights, '+info')
    const hiding = await startHidingProxy(server.url)
    t.onTestFinished(() => hiding.close())
    const REDIS_URL = `redis://guest:secret@127.0.0.1:${hiding.port}`
    const gateway = await start(t, gatewayProgram, REDIS_URL)
    const warning = refusesConfig ? /^redis does not tell whether it evicts/ : /^redis may evict/
    await gateway.waitForLog(({ level, msg }) => level === 'warn' && warning.test(String(msg)))
    assert.equal(gateway.logs.filter(({ level, msg }) => level === 'warn' && /^redis/.test(String(msg))).length, 1)
    assert.deepEqual(await seriesOf(gateway.opsUrl), [`spillway_redis_evicts ${refusesConfig ? 'Nan' : '1'}`])
  })
}

/** A way to Redis on which INFO has no `maxmemory_policy`, as at some services. */
async function startHidingProxy(redisUrl: string) {
  const { hostname, port } = new URL(redisUrl)
  const proxy = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    client.pipe(upstream)
    upstream.on('data', (bytes) => {
      const text = bytes.toString('latin1').replace('maxmemory_policy:', 'xaxmemory_policy:')
      client.write(Buffer.from(text, 'latin1'))
    })
    client.on('close', () => upstream.destroy()).on('error', () => undefined)
    upstream.on('close', () => client.destroy()).on('error', () => undefined)
  })
  const ownPort = await listening(proxy)
  return { port: ownPort, close: () => new Promise<void>((resolve) => void proxy.close(() => resolve())) }
}
