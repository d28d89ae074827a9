// Redis goes away, loses what it had, and comes back: what clients and workers make of it.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { closedGate } from '@spillway/infra/harness/namespace'
import type { TcpProxy } from '@spillway/infra/harness/tcp-proxy'
import { freePort } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { PasswordClientError } from '@spillway/queue/errors'
import { queueKey } from '@spillway/queue/keys'
import { resultKey } from '@spillway/queue/wire/reply'
import { test } from 'vitest'
import { hastyClient, proxiedClient, readyClient, resultOf, startedWorker, submit, submitted } from '../parts.ts'
import { jobKey, redisProxy, type Space, spaceFor, waitingJobs } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-token$' }
const match = { kind: 'match' }

function isUnavailable(error: unknown): boolean {
  return error instanceof PasswordClientError && error.code === 'queue_unavailable'
}

test.concurrent('without Redis a client is not ready, and adds, finds and removes nothing', async (t) => {
  const { proxy, client } = await proxiedClient(t)
  const pending = await submitted(client)
  proxy.refuse()
  await until(() => !client.isReady())
  assert.equal(await resultOf(pending, 50), undefined)
  await assert.rejects(submit(client, 'verify', request), isUnavailable)
  await assert.rejects(client.resume(pending.job), isUnavailable)
  assert.equal(await client.remove(pending.job), false)
  await client.present(pending.job, 1_000)

  proxy.restore()
  await until(() => client.isReady())
  assert.equal((await client.resume(pending.job)).state, 'waiting')
})

test.concurrent('a Redis that takes connections and answers nothing is given up', async (t) => {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  const client = hastyClient(space, { redisUrl: proxy.url })
  await until(() => client.isReady())
  proxy.freeze()
  await assert.rejects(submit(client, 'verify', request), isUnavailable)
  proxy.restore()
})

for (const kind of ['commands', 'results'] as const) {
  test.concurrent(`a job that Redis lost is waited for until the connection for ${kind} is back, and a job that is there for longer`, async (t) => {
    const { space, proxy, client } = await proxiedClient(t)
    const [lost, kept] = [await submitted(client), await submitted(client)]
    const results = [resultOf(lost, 600_000), resultOf(kept, 600_000)]
    const address = (await connectionsBy(space, proxy))[kind]
    await space.redis
      .multi()
      .del(jobKey(space, lost.job.id))
      .lrem(queueKey(space.prefix, 'wait'), 0, lost.job.id)
      .client('KILL', 'ADDR', address)
      .exec()
    assert.equal(await results[0], undefined)
    assert.equal((await client.resume(lost.job)).state, 'absent')
    await startedWorker(space)
    assert.deepEqual(await results[1], match)
  })
}

const breaks: [when: string, lose: (proxy: TcpProxy, space: Space) => Promise<unknown>][] = [
  [
    'before Redis heard of it',
    (proxy) => {
      proxy.freeze()
      // When a command was sent that does not arrive, nobody can say: it is given a moment.
      return sleep(100)
    },
  ],
  [
    'after Redis took it, before it could say so',
    (proxy, space) => {
      proxy.freezeReplies()
      return until(async () => (await waitingJobs(space)).length === 1)
    },
  ],
]

test.concurrent('a job that comes while there is no connection is added on the next one, and waited for', async (t) => {
  const { space, proxy, client } = await proxiedClient(t)
  // A busy machine may take longer for a connection than a client waits.
  const pending = await until(async () => {
    proxy.refuse()
    await until(() => !client.isReady())
    const submitted = submit(client, 'verify', request)
    proxy.restore()
    return await submitted
  })
  const result = resultOf(pending)
  await until(() => client.isReady())
  await startedWorker(space)
  assert.deepEqual(await result, match)
})

for (const [when, lose] of breaks) {
  test.concurrent(`a job whose connection breaks while it is added, ${when}, is added once`, async (t) => {
    const { space, pending } = await until(async () => {
      const { space, proxy, client } = await proxiedClient(t)
      const lost = lose(proxy, space)
      const submitted = submit(client, 'verify', request)
      const backAgain = lost.then(() => {
        proxy.refuse()
        proxy.restore()
      })
      const [pending] = await Promise.all([submitted, backAgain])
      return { space, pending }
    })
    assert.deepEqual(await waitingJobs(space), [pending.job.id])
    const result = resultOf(pending)
    await startedWorker(space)
    assert.deepEqual(await result, match)
  })
}

test.concurrent('a result that came while the client was away is found when it is back', async (t) => {
  const { space, proxy, client } = await proxiedClient(t)
  const pending = await submitted(client)
  // At the end of its wait it would be found in any case.
  const answer = resultOf(pending, 600_000)
  proxy.refuse()
  await until(() => !client.isReady())
  await startedWorker(space)
  await until(() => space.redis.exists(resultKey(space.prefix, pending.job.id)))
  proxy.restore()
  assert.deepEqual(await answer, match)
})

test.concurrent('a worker that lost Redis in the middle of a job answers it when Redis is back', async (t) => {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  const client = await readyClient(space)
  await startedWorker(space, { slots: 1, env: { REDIS_URL: proxy.url } })
  const gate = await closedGate(t)
  const pending = await submitted(client, gate.storedHash)
  const answer = resultOf(pending)
  await until(() => client.estimates.load().workers === 1 && client.estimates.load().active === 1)
  proxy.refuse()
  await until(() => client.estimates.load().workers === 0, { what: 'a queue without workers' })
  gate.open()
  proxy.restore()
  assert.deepEqual(await answer, match)
  assert.deepEqual(await resultOf(await submitted(client)), match)
})

test.concurrent('a worker that is started while Redis is away is alive, and takes jobs when Redis is there', async (t) => {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  proxy.refuse()
  const client = await readyClient(space)
  const pending = await submitted(client)
  const port = await freePort()
  const started = startedWorker(space, { env: { REDIS_URL: proxy.url, OPS_PORT: String(port) } })
  const probe = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status
  await until(async () => (await probe('/healthz')) === 200)
  assert.equal(await probe('/readyz'), 503)
  proxy.restore()
  await started
  assert.deepEqual(await resultOf(pending), match)
})

/** Which of a client's two connections is which, by their addresses. */
async function connectionsBy({ redis }: Space, proxy: TcpProxy): Promise<{ commands: string; results: string }> {
  return await until(async () => {
    const own = proxy.addresses()
    const lines = String(await redis.client('LIST')).split('\n')
    const found = lines.flatMap((line) => {
      const [, address = '', flags = ''] = / addr=(\S+) .* flags=(\S+) /.exec(line) ?? []
      return own.includes(address) ? [{ address, isSubscriber: flags.includes('P') }] : []
    })
    const results = found.find((connection) => connection.isSubscriber)?.address
    const commands = found.find((connection) => !connection.isSubscriber)?.address
    return commands !== undefined && results !== undefined ? { commands, results } : undefined
  })
}
