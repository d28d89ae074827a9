// A Redis that answers, and refuses to write: because it is full, or has lost its replicas.
import assert from 'node:assert/strict'
import { closedGate } from '@spillway/infra/harness/namespace'
import { withDoubles } from '@spillway/infra/harness/spillway'
import { startProcess } from '@spillway/infra/processes/node-process'
import { freePort } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { connectRedis } from '@spillway/queue/redis/connect'
import { afterAll, test } from 'vitest'
import { readyClient, resultOf, startedWorker, submit, workerEnvironment } from '../parts.ts'
import { activeJobs, type Space, spaceFor, waitingJobs } from '../space.ts'
import { startedWorkerProcess } from '../worker-process.ts'

const { url: redisUrl, close } = await startOwnRedis()
afterAll(close)

/** Why it refuses writes, and the setting for it: no memory is left, or no replica is there. */
const refusals = { OOM: 'maxmemory', NOREPLICAS: 'min-replicas-to-write' } as const

/** Has the space's Redis refuse writes until the returned function is called, or the test ends. */
async function refuseWrites({ redis, closing }: Space, why: keyof typeof refusals): Promise<() => Promise<void>> {
  const setting = refusals[why]
  await redis.config('SET', setting, '1')
  const takeAgain = async () => void (await redis.config('SET', setting, '0'))
  closing(takeAgain)
  return takeAgain
}

const request = { password: 'right', storedHash: '$spillway-token$' }
const match = { kind: 'match' }

for (const why of ['OOM', 'NOREPLICAS'] as const) {
  test(`a worker whom Redis answers with ${why} stays alive, and works again when it is over`, async (t) => {
    const space = spaceFor(t, redisUrl)
    const client = await readyClient(space)
    const worker = await startedWorker(space, { env: { STUCK_AFTER_MS: '1000' } })
    const takeAgain = await refuseWrites(space, why)
    const end = performance.now() + 3_000
    const answers = new Set<number>()
    await until(async () => {
      answers.add((await fetch(`${worker.opsUrl}/healthz`)).status)
      return performance.now() > end
    })
    assert.deepEqual([...answers], [200])
    await takeAgain()
    assert.deepEqual(await resultOf(await submit(client, 'verify', request)), match)
  })
}

test('a client that may not subscribe again goes on, and has its replies when it may', async (t) => {
  const space = spaceFor(t, redisUrl)
  const client = await readyClient(space)
  await startedWorker(space)
  await space.redis.call('ACL', 'SETUSER', 'default', 'resetchannels')
  space.closing(async () => void (await space.redis.call('ACL', 'SETUSER', 'default', 'allchannels')))
  await space.redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await until(() => !client.isReady())
  await space.redis.call('ACL', 'SETUSER', 'default', 'allchannels')
  await until(() => client.isReady())
  assert.deepEqual(await resultOf(await submit(client, 'verify', request)), match)
})

test('a worker that is started while Redis is full is alive, not ready, and ready when there is room', async (t) => {
  const space = spaceFor(t, redisUrl)
  const client = await readyClient(space)
  const pending = await submit(client, 'verify', request)
  const takeAgain = await refuseWrites(space, 'OOM')
  const port = await freePort()
  const worker = startProcess({ ...withDoubles, env: { ...workerEnvironment(space), OPS_PORT: String(port) } })
  space.closing(() => worker.close())
  await worker.waitForLog(({ msg }) => msg === 'capacity could not be published')
  const probe = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status
  await until(async () => (await probe('/healthz')) === 200)
  assert.equal(await probe('/readyz'), 503)
  assert.deepEqual(await waitingJobs(space), [pending.job.id])
  await takeAgain()
  await worker.waitForLog(({ msg }) => msg === 'worker ready')
  await until(async () => (await probe('/readyz')) === 200)
  assert.deepEqual(await resultOf(pending), match)
})

test('a connection says that the server has no room for it, and opens when there is room', async (t) => {
  const { redis, closing } = spaceFor(t, redisUrl)
  await redis.config('SET', 'maxclients', 1)
  const room = () => redis.config('SET', 'maxclients', 10_000)
  closing(room)
  const connection = connectRedis(redisUrl, 'consumer')
  closing(async () => connection.disconnect())
  const reasons = new Set<string>()
  connection.on('error', ({ message }) => reasons.add(message))
  await until(() => reasons.has('ERR max number of clients reached'))
  await room()
  await until(() => connection.status === 'ready')
})

test('SIGTERM while Redis refuses writes: the job in hand is finished, and the exit code is 0', async (t) => {
  const space = spaceFor(t, redisUrl)
  const client = await readyClient(space)
  const worker = await startedWorkerProcess(space)
  const gate = await closedGate(t)
  const pending = await submit(client, 'verify', { ...request, storedHash: gate.storedHash })
  await until(async () => (await activeJobs(space)).length === 1)
  const takeAgain = await refuseWrites(space, 'NOREPLICAS')
  const stopped = worker.stop('SIGTERM')
  const refused = await worker.waitForLog(({ msg }) => msg === 'worker shutdown step failed')
  assert.equal(refused.step, 'withdraw capacity')
  await takeAgain()
  gate.open()
  assert.deepEqual(await resultOf(pending), match)
  assert.deepEqual(await stopped, { code: 0, signal: null })
})
