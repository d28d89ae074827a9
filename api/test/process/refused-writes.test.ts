// A Redis server that cannot save refuses writes and answers all else: nobody is ready meanwhile.
import assert from 'node:assert/strict'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@spillway/infra/processes/until'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { afterAll, test } from 'vitest'
import { asIs } from '../client.ts'
import { openSystem, readiness } from '../system.ts'

const redis = await startOwnRedis()
afterAll(() => redis.close())
const system = await openSystem()
const env = { REDIS_URL: redis.url }
const worker = await system.worker(env)
const gateway = await system.gatewayProcess(env)
const { api } = gateway

const saves = async () => /rdb_last_bgsave_status:(\w+)/.exec(String(await redis.command('INFO', 'persistence')))?.[1]
const connected = async (opsUrl: string) =>
  /^spillway_redis_connected (\d)$/m.exec(await (await fetch(`${opsUrl}/metrics`)).text())?.[1]

test('gateway and worker are not ready while Redis answers MISCONF, say why in a line, and go on after it', async (t) => {
  const account = await api.newAccount()
  const [, dir] = Object(await redis.command('CONFIG', 'GET', 'dir'))
  // A file cannot take the place of a folder that is not empty.
  const obstacle = join(String(dir), 'dump.rdb')
  await mkdir(join(obstacle, 'x'), { recursive: true })
  t.onTestFinished(() => rm(obstacle, { recursive: true, force: true }))
  await redis.command('CONFIG', 'SET', 'save', '3600 1')
  await redis.command('BGSAVE')
  await until(async () => (await saves()) === 'err')

  await until(async () => (await readiness(gateway.url)).checks.queue === 'failing')
  await until(async () => (await fetch(`${worker.opsUrl}/readyz`)).status === 503)
  assert.equal((await readiness(gateway.url)).status, 'failing')
  for (const { opsUrl } of [gateway, worker]) assert.equal(await connected(opsUrl), '0')
  for (let n = 0; n < 20; n += 1) assert.equal((await api.login(account, asIs)).status, 503)
  await gateway.waitForLog(({ msg, reason }) => msg === 'redis refuses writes' && /^MISCONF /.test(String(reason)))
  await worker.waitForLog(({ reason }) => /^MISCONF /.test(String(reason)))
  const told = gateway.logs.filter(({ msg }) => msg === 'requests fail: the queue cannot be used')
  assert.match(String(told[0]?.reason), /^MISCONF /)
  assert.ok(told.length <= 1 + Math.floor(process.uptime() / 10), gateway.output())
  assert.doesNotMatch(gateway.output(), /"stack"/)

  await rm(obstacle, { recursive: true })
  await redis.command('BGSAVE')
  await until(async () => (await saves()) === 'ok')
  await until(async () => (await readiness(gateway.url)).status === 'ok')
  await until(async () => (await fetch(`${worker.opsUrl}/readyz`)).status === 200)
  await until(async () => (await api.login(account)).status === 200)
})
