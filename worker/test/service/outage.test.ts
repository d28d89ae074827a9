// Redis goes away, loses what it had, and comes back: what clients and workers make of it.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { closedGate } from '@spillway/infra/rig/namespace'
import { monitorRedis } from '@spillway/infra/rig/redis-monitor'
import type { TcpProxy } from '@spillway/infra/rig/tcp-proxy'
import { PasswordClientError } from '@spillway/queue/errors'
import { queueKey, toEntries } from '@spillway/queue/jobs/keys'
import type { JobRef, PasswordClient, PasswordClientOptions } from '@spillway/queue/queue-client'
import { capacityKey } from '@spillway/queue/wire/capacity'
import { verdictKey } from '@spillway/queue/wire/reply'
import { type TestContext, test, vi } from 'vitest'
import { forgotten } from '../garbage.ts'
import {
  answerOf,
  clientFor,
  jobsAreCounted,
  jobsCounted,
  keepingLog,
  proxiedClient,
  readyClient,
  startedWorker,
  submitted,
} from '../parts.ts'
import { activeJobs, jobKey, redisProxy, resultOf, type Space, spaceFor, waitingJobs } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-token$' }
const match = { kind: 'match' }

function isUnavailable(error: unknown): boolean {
  return error instanceof PasswordClientError && error.code === 'queue_unavailable'
}

/** A Redis server without persistence loses all keys when it restarts. */
async function loseEverything({ redis, prefix }: Space): Promise<void> {
  await redis.del(...(await redis.keys(`${prefix}*`)))
}

/** A client by way of a proxy, and how often it added a job again. */
async function observedClient(t: TestContext, options: Partial<PasswordClientOptions> = {}) {
  const counted = { addedAgain: 0 }
  const observer = {
    verdictReceived() {},
    verdictBroken() {},
    jobAddedAgain() {
      counted.addedAgain += 1
    },
  }
  return { ...(await proxiedClient(t, { observer, ...options })), counted }
}

test('without Redis a client says so before any command has timed out', async (t) => {
  const { proxy, client } = await proxiedClient(t)
  proxy.refuse()
  await until(() => !client.isReady())
  // The timers of ioredis stand still: no command times out.
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  t.onTestFinished(() => void vi.useRealTimers())
  await assert.rejects(client.submit('verify', request), isUnavailable)
})

test.concurrent('without Redis a client is not ready, and what it could not cancel then is cancelled later', async (t) => {
  const { space, proxy, client } = await proxiedClient(t)
  const pending = await submitted(client)
  proxy.refuse()
  await until(() => !client.isReady())
  assert.equal(await answerOf(pending, 50), undefined)
  await assert.rejects(client.submit('verify', request), isUnavailable)
  assert.equal(await client.cancel(pending.job), false)
  await assert.rejects(client.resume(pending.job), isUnavailable)

  proxy.restore()
  // The jobs that could not be cancelled then are cancelled now.
  await until(async () => (await waitingJobs(space)).length === 0)
  await until(() => client.isReady())
})

test.concurrent('a Redis that takes connections and answers nothing is given up', async (t) => {
  const { proxy, client } = await proxiedClient(t)
  proxy.freeze()
  await assert.rejects(client.submit('verify', request), isUnavailable)
  proxy.restore()
})

test.concurrent('a job that cannot be cancelled is forgotten after its deadline, also while Redis is away, and before it when Redis is back', async (t) => {
  const { proxy, client } = await proxiedClient(t)
  proxy.refuse()
  await until(() => !client.isReady())
  const late = await cancelledInVain(client, client.now() + 200)
  const remembered = await cancelledInVain(client, client.now() + 60_000)
  await forgotten(late)
  assert.notEqual(remembered.deref(), undefined)
  proxy.restore()
  // It is long before its deadline: what Redis has answered is not asked again.
  await forgotten(remembered)
})

/** Whether a command is the script that removes a waiting job, which alone has 7 keys. */
const isRemoval = ({ command: [name, , keys] }: { command: string[] }) => name?.startsWith('eval') && keys === '7'

test.concurrent('a cancellation that fails while the connection stands is tried until it succeeds', async (t) => {
  const { space, client } = await clientFor(t)
  const pending = await submitted(client)
  assert.equal(await answerOf(pending, 0), undefined)
  const { job } = pending
  const wait = queueKey(space.prefix, 'wait')
  await space.redis.rename(wait, `${wait}-aside`)
  await space.redis.set(wait, 'no list')
  const monitor = await monitorRedis(space.redisUrl)
  space.closing(async () => monitor.close())
  const attempts = () => monitor.commands.filter(isRemoval).filter(({ command }) => command.at(-1) === job.id)
  assert.equal(await client.cancel(job), false)
  await until(() => attempts().length >= 2)
  await space.redis.rename(`${wait}-aside`, wait)
  await until(async () => (await waitingJobs(space)).length === 0)
})

test.concurrent('a job that was never sent is not cancelled', async (t) => {
  const { space, proxy, client } = await proxiedClient(t)
  const { job } = await submitted(client)
  await until(async () => (await waitingJobs(space)).join() === job.id)
  proxy.refuse()
  // The connection of commands: until it has ended, a job may have been sent.
  await until(() => client.redis.every(({ connection }) => connection.status !== 'ready'))
  await assert.rejects(client.submit('verify', request), isUnavailable)
  assert.equal(await client.cancel(job), false)
  const monitor = await monitorRedis(space.redisUrl)
  space.closing(async () => monitor.close())
  const removals = () =>
    monitor.commands.filter(isRemoval).filter(({ command }) => command.includes(queueKey(space.prefix, 'wait')))
  proxy.restore()
  await until(() => removals().length > 0)
  // Removals are repeated when Redis is slow, also of jobs that it was slow to take before.
  const sent = await jobsOf(space, 'added')
  assert.ok(sent.includes(job.id))
  for (const { command } of removals()) assert.ok(sent.includes(command.at(-1) ?? ''), 'a job that was never sent')
})

test.concurrent('jobs that Redis lost are added again by the client that waits for them, and by nobody else', async (t) => {
  const { space, proxy, client } = await proxiedClient(t)
  const [waited, left, resumed] = [
    await submitted(client),
    await submitted(client),
    await submitted(await readyClient(space)),
  ]
  const answers = [answerOf(waited), answerOf(await client.resume(resumed.job), 2_000)]
  for (const given of [left, resumed]) await answerOf(given, 0)
  proxy.refuse()
  await until(() => !client.isReady())
  await loseEverything(space)
  proxy.restore()
  await until(async () => (await waitingJobs(space)).length > 0)
  assert.deepEqual(await waitingJobs(space), [waited.job.id])

  await startedWorker(space)
  assert.deepEqual(await Promise.all(answers), [match, undefined])
})

for (const kind of ['commands', 'replies'] as const) {
  test.concurrent(`jobs are added again when it was only the connection for ${kind} that broke`, async (t) => {
    const { space, proxy, client } = await proxiedClient(t)
    const pending = await submitted(client)
    const answer = answerOf(pending)
    const address = (await connectionsBy(space, proxy))[kind]
    const { prefix, redis } = space
    await redis
      .multi()
      .del(queueKey(prefix, 'wait'), jobKey(space, pending.job.id))
      .client('KILL', 'ADDR', address)
      .exec()
    await until(async () => (await waitingJobs(space)).includes(pending.job.id))
    await startedWorker(space)
    assert.deepEqual(await answer, match)
  })
}

test.concurrent('a job that Redis lost is added again although no connection broke, as when a Cluster replaces a master', async (t) => {
  const { space, client, counted } = await observedClient(t)
  const answer = answerOf(await submitted(client))
  await loseEverything(space)
  await startedWorker(space)
  assert.deepEqual(await answer, match)
  assert.equal(counted.addedAgain, 1)
})

test.concurrent('after a reconnect nothing is added again but what was lost', async (t) => {
  const { space, proxy, client, counted } = await observedClient(t)
  await startedWorker(space, { slots: 1 })
  const inHand = await client.submit('verify', { ...request, storedHash: '$spillway-wait$2500$' })
  await until(async () => (await activeJobs(space)).length === 1)
  const [lost, ...kept] = [await submitted(client), await submitted(client), await submitted(client)]
  const answers = [lost, inHand, ...kept].map((pending) => answerOf(pending))
  proxy.refuse()
  await until(() => !client.isReady())
  const { prefix, redis } = space
  await redis.multi().lrem(queueKey(prefix, 'wait'), 1, lost.job.id).del(jobKey(space, lost.job.id)).exec()
  proxy.restore()
  await until(() => counted.addedAgain > 0)
  assert.deepEqual(await Promise.all(answers), [match, match, match, match])
  assert.equal(counted.addedAgain, 1)
  const added = [...[inHand, lost, ...kept].map(({ job }) => job.id), lost.job.id]
  assert.deepEqual(await jobsOf(space, 'added', 'duplicated'), added)
})

test.concurrent('a job whose adding waits for the connection is not taken for lost when that is back', async (t) => {
  const { space, proxy, client, counted } = await observedClient(t)
  // Adding waits for a second: on a busy machine connecting may take longer.
  const submitted = await until(async () => {
    proxy.refuse()
    await until(() => !client.isReady())
    const adding = client.submit('verify', request).catch(() => undefined)
    proxy.restore()
    return adding
  })
  const answer = answerOf(submitted)
  await startedWorker(space)
  assert.deepEqual(await answer, match)
  assert.equal(counted.addedAgain, 0)
})

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

for (const [when, lose] of breaks) {
  test.concurrent(`a job whose connection breaks while it is added, ${when}, is added once`, async (t) => {
    const { space, proxy, client, counted } = await observedClient(t)
    const lost = lose(proxy, space)
    const submitted = client.submit('verify', request)
    await lost
    proxy.refuse()
    proxy.restore()
    const pending = await submitted
    assert.deepEqual(await waitingJobs(space), [pending.job.id])
    await startedWorker(space)
    assert.deepEqual(await answerOf(pending), match)
    assert.deepEqual(await jobsOf(space, 'added'), [pending.job.id])
    assert.equal(counted.addedAgain, 0)
  })
}

test.concurrent('a job of which Redis did not say whether it took it is cancelled', async (t) => {
  const { space, proxy, client } = await proxiedClient(t)
  proxy.freezeReplies()
  const submitted = assert.rejects(client.submit('verify', request), isUnavailable)
  await until(async () => (await waitingJobs(space)).length === 1)
  await submitted
  proxy.restore()
  await until(async () => (await waitingJobs(space)).length === 0)
})

test.concurrent('a job that is lost after its deadline is not added again', async (t) => {
  const { space, client, counted } = await observedClient(t, { jobLifeMs: 200 })
  const { job, answer } = await submitted(client)
  await until(() => client.now() > job.deadline)
  await loseEverything(space)
  // Two looks at what has become of it come by meanwhile.
  assert.equal(await answer({ waitMs: 2_500, signal: new AbortController().signal }), undefined)
  assert.equal(counted.addedAgain, 0)
})

test.concurrent('a job that is cancelled while a request waits for it is not added again', async (t) => {
  const { space, client, counted } = await observedClient(t)
  const [cancelled, lost] = [await submitted(client), await submitted(client)]
  const waiting = new AbortController()
  const unanswered = assert.rejects(cancelled.answer({ waitMs: 60_000, signal: waiting.signal }))
  const answer = answerOf(lost)
  assert.equal(await client.cancel(cancelled.job), true)
  await space.redis.del(jobKey(space, lost.job.id), `${space.prefix}:passwords:wait`)
  await until(() => counted.addedAgain > 0, { what: 'a look at what has become of both' })
  assert.deepEqual(await waitingJobs(space), [lost.job.id])
  await startedWorker(space)
  assert.deepEqual(await answer, match)
  waiting.abort()
  await unanswered
})

test.concurrent('a lost job whose wait ends while it is added again stays, for its ticket', async (t) => {
  const { space, proxy, client, counted } = await observedClient(t)
  const { job, answer } = await submitted(client)
  const waiting = new AbortController()
  const unanswered = assert.rejects(answer({ waitMs: 60_000, signal: waiting.signal }))
  // The wait ends before the client hears that the job was added.
  proxy.delayMs = 300
  // The loss is repeated when the client heard first.
  let heard: number
  do {
    heard = counted.addedAgain
    await loseEverything(space)
    await until(async () => (await waitingJobs(space)).length > 0, { what: 'the job, added again' })
  } while (counted.addedAgain > heard)
  waiting.abort()
  await unanswered
  await until(() => counted.addedAgain > heard, { what: 'the end of the addition' })
  proxy.delayMs = 0
  // Behind whatever the client has sent by now.
  await client.redis[0]?.connection.ping()
  assert.deepEqual(await waitingJobs(space), [job.id])
})

test.concurrent('a verdict that came while the client was away is found when it is back', async (t) => {
  const { space, proxy, client } = await proxiedClient(t)
  const pending = await submitted(client)
  // At the end of its wait it would be found in any case.
  const answer = answerOf(pending, 600_000)
  proxy.refuse()
  await until(() => !client.isReady())
  await startedWorker(space)
  await until(() => space.redis.exists(verdictKey(space.prefix, pending.job.id)))
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
  const answer = answerOf(pending)
  await until(() => client.load().workers === 1 && client.load().active === 1)
  proxy.refuse()
  await until(() => client.load().workers === 0, { what: 'a queue without workers' })
  gate.open()
  proxy.restore()
  assert.deepEqual(await answer, match)
  assert.deepEqual(await answerOf(await submitted(client)), match)
})

test.concurrent('a client made while Redis is away is of use as soon as Redis is there', async (t) => {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  await startedWorker(space)
  proxy.refuse()
  const ready = readyClient(space, { redisUrl: proxy.url })
  proxy.restore()
  assert.deepEqual(await answerOf(await submitted(await ready)), match)
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
  assert.deepEqual(await answerOf(pending), match)
})

test.concurrent('a verdict that Redis does not take is offered again until it does', async (t) => {
  const { space, redis, prefix, client } = await clientFor(t)
  const user = await userWithoutVerdicts(space)
  const { lines, log } = keepingLog()
  const worker = await startedWorker(space, { slots: 1, env: { REDIS_URL: user.redisUrl }, log })
  const pending = await submitted(client)
  await until(() => lines.some(({ msg }) => msg.startsWith('verdict refused')))
  assert.equal(await answerOf(await client.resume(pending.job), 0), undefined)
  assert.deepEqual(await jobsCounted(worker), [])

  await redis.call('ACL', 'SETUSER', user.name, `~${prefix}:*`)
  assert.deepEqual(await answerOf(pending), match)
  await jobsAreCounted(worker, 'verify hashed 1')
})

test.concurrent('a worker that stops goes on offering a verdict that Redis does not take', async (t) => {
  const { space, redis, prefix, client } = await clientFor(t)
  const user = await userWithoutVerdicts(space)
  const worker = await startedWorker(space, { slots: 1, env: { REDIS_URL: user.redisUrl, SHUTDOWN_GRACE_MS: '60000' } })
  const refusals = async () => {
    const log = await redis.call('ACL', 'LOG')
    const entries = Array.isArray(log) ? log.map(toEntries) : []
    return entries.reduce((sum, { username, count }) => sum + (username === user.name ? Number(count) : 0), 0)
  }
  const pending = await submitted(client)
  await until(() => resultOf(space, pending.job.id))
  const closed = worker.close()
  await until(async () => (await redis.hlen(capacityKey(prefix))) === 0)
  const before = await refusals()
  await until(async () => (await refusals()) >= before + 3)
  await redis.call('ACL', 'SETUSER', user.name, `~${prefix}:*`)
  assert.deepEqual(await answerOf(pending), match)
  await closed
})

test.concurrent('a verdict that Redis never takes is counted as lost at its deadline, and its slot is free at once', async (t) => {
  const { space, client } = await clientFor(t, { jobLifeMs: 5_000 })
  const user = await userWithoutVerdicts(space)
  const worker = await startedWorker(space, { slots: 1, env: { REDIS_URL: user.redisUrl } })
  const { job } = await submitted(client)
  await until(() => resultOf(space, job.id))
  assert.deepEqual(await jobsCounted(worker), [])
  await jobsAreCounted(worker, 'verify undelivered 1')
})

/** The ids of the jobs to which one of these events happened, in order. */
async function jobsOf({ redis, prefix }: Space, ...events: string[]): Promise<string[]> {
  const entries = await redis.xrange(queueKey(prefix, 'events'), '-', '+')
  return entries.flatMap(([, [, event = '', , jobId = '']]) => (events.includes(event) ? [jobId] : []))
}

async function cancelledInVain(client: PasswordClient, deadline: number): Promise<WeakRef<JobRef>> {
  const job: JobRef = { id: randomUUID(), name: 'verify', deadline }
  assert.equal(await client.cancel(job), false)
  return new WeakRef(job)
}

/** A user of Redis that may do everything but store verdicts, as where Redis is full for them */
async function userWithoutVerdicts(space: Space): Promise<{ name: string; redisUrl: string }> {
  const { redis, prefix } = space
  const name = prefix.replace(/[{}]/g, '')
  const keys = ['passwords:*', 'capacity', 'canary', 'absent', 'returned', 'line', 'present:*'].map(
    (key) => `~${prefix}:${key}`,
  )
  await redis.call('ACL', 'SETUSER', name, 'on', '>secret', ...keys, '&*', '+@all')
  space.closing(() => redis.call('ACL', 'DELUSER', name))
  const url = new URL(space.redisUrl)
  url.username = name
  url.password = 'secret'
  return { name, redisUrl: url.href }
}

/** Which of a client's two connections is which, by their addresses. */
async function connectionsBy({ redis }: Space, proxy: TcpProxy): Promise<{ commands: string; replies: string }> {
  return await until(async () => {
    const own = proxy.addresses()
    const lines = String(await redis.client('LIST')).split('\n')
    const found = lines.flatMap((line) => {
      const [, address = '', flags = ''] = / addr=(\S+) .* flags=(\S+) /.exec(line) ?? []
      return own.includes(address) ? [{ address, isSubscriber: flags.includes('P') }] : []
    })
    const replies = found.find((connection) => connection.isSubscriber)?.address
    const commands = found.find((connection) => !connection.isSubscriber)?.address
    return commands !== undefined && replies !== undefined ? { commands, replies } : undefined
  })
}
