// The cost of delivering a verdict.
import assert from 'node:assert/strict'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { monitorRedis } from '@spillway/infra/rig/redis-monitor'
import { RedisClock } from '@spillway/queue/redis/clock'
import { type JobRef, presentKey, replyChannel, verdictKey } from '@spillway/queue/wire/reply'
import { test } from 'vitest'
import { Delivery } from '../../src/consumer/deliver.ts'
import { answerOf, clientAndWorker, clientFor, jobsCounted, readyClient, startedWorker } from '../parts.ts'
import { jobKey, type Space, spaceFor } from '../space.ts'

test.concurrent('a verdict crosses to Redis once, and how it is to be stored once for each connection', async (t) => {
  const { space, redis, prefix, client } = await clientAndWorker(t)
  const monitor = await monitorRedis(space.redisUrl)
  space.closing(async () => monitor.close())
  const commands = []
  for (let n = 0; n < 2; n += 1) {
    const pending = await client.submit('hash', { password: 'x' })
    assert.ok(await answerOf(pending))
    const key = verdictKey(prefix, pending.job.id)
    const sealed = (await redis.get(key)) ?? assert.fail('no verdict is stored')
    const { command } = await until(() =>
      monitor.commands.find(
        ({ byScript, command: [name, ...rest] }) => !byScript && name !== 'get' && rest.includes(key),
      ),
    )
    assert.equal(command.filter((argument) => argument.includes(sealed)).length, 1)
    commands.push(command[0])
  }
  assert.deepEqual(commands, ['eval', 'evalsha'])
})

/** Writes a key of every type but the right one. */
const wrongTypes: [what: string, write: (space: Space, key: string) => Promise<unknown>][] = [
  ['list', ({ redis }, key) => redis.lpush(key, 'x')],
  ['set', ({ redis }, key) => redis.sadd(key, 'x')],
  ['sorted set', ({ redis }, key) => redis.zadd(key, 1, 'x')],
  ['hash', ({ redis }, key) => redis.hset(key, 'x', 'x')],
  ['stream', ({ redis }, key) => redis.xadd(key, '*', 'x', 'x')],
]

/** Every message on the channel of the client that added a job, from now on. */
async function messagesTo({ redis, prefix, closing, ...space }: Space, { id }: JobRef): Promise<string[]> {
  const { replyTo } = JSON.parse((await redis.hget(jobKey({ redis, prefix, closing, ...space }, id), 'data')) ?? '')
  const messages: string[] = []
  const listener = redis.duplicate()
  closing(async () => listener.disconnect())
  listener.on('message', (_channel, message) => messages.push(message))
  await listener.subscribe(replyChannel(prefix, replyTo))
  return messages
}

for (const [what, write] of wrongTypes) {
  test.concurrent(`a ${what} where the redeemer or the verdict belongs: the verdict is announced and stored once`, async (t) => {
    const { space, client } = await clientFor(t)
    const pending = await client.submit('verify', { password: 'wrong', storedHash: '$spillway-token$' })
    const messages = await messagesTo(space, pending.job)
    await write(space, presentKey(space.prefix, pending.job.id))
    await write(space, verdictKey(space.prefix, pending.job.id))
    const worker = await startedWorker(space)
    assert.deepEqual(await answerOf(pending), { kind: 'mismatch' })
    await until(async () => (await jobsCounted(worker)).includes('verify hashed 1'))
    assert.equal(messages.length, 1)
    assert.equal(messages[0], `${pending.job.id} ${await space.redis.get(verdictKey(space.prefix, pending.job.id))}`)
  })

  test.concurrent(`a ${what} where a verdict belongs is no verdict, and keeps nobody from theirs`, async (t) => {
    const { space, client } = await clientFor(t)
    const [forged, pending] = [
      await client.submit('hash', { password: 'x' }),
      await client.submit('hash', { password: 'x' }),
    ]
    await write(space, verdictKey(space.prefix, forged.job.id))
    const elsewhere = await readyClient(space)
    const redeemed = await elsewhere.resume(forged.job)
    // Taken out without a trace: only asking Redis every second brings it back.
    await space.redis.del(jobKey(space, pending.job.id), `${space.prefix}:passwords:wait`)
    await startedWorker(space)
    assert.ok(await answerOf(pending))
    await space.redis.lpush(`${space.prefix}:passwords:wait`, forged.job.id)
    await space.redis.zadd(`${space.prefix}:passwords:marker`, 0, '0')
    assert.ok(await answerOf(forged))
    assert.ok(await answerOf(redeemed))
  })
}

test.concurrent('a verdict is announced once to the gateway that added its job, and once to another one that redeems its ticket', async (t) => {
  const { redis, prefix, closing } = spaceFor(t)
  const log = createLogger({ service: 'test', level: 'silent' })
  const delivery = new Delivery({ redis, prefix, clock: new RedisClock(), log })
  const heard: string[][] = []
  const subscriber = redis.duplicate()
  closing(async () => subscriber.disconnect())
  subscriber.on('message', (channel: string, message: string) => heard.push([channel, message]))
  const [adding, redeeming, bystander] = ['adding', 'redeeming', 'bystander'].map((to) => replyChannel(prefix, to))
  await subscriber.subscribe(`${adding}`, `${redeeming}`, `${bystander}`)
  const deliver = (id: string) =>
    delivery.deliver({ id, name: 'verify', deadline: Date.now() + 60_000, replyTo: 'adding' }, 'sealed')

  await redis.set(presentKey(prefix, 'elsewhere'), 'redeeming')
  await redis.set(presentKey(prefix, 'at-home'), 'adding')
  for (const id of ['elsewhere', 'at-home', 'nowhere']) await deliver(id)
  const expected = [
    [adding, 'elsewhere sealed'],
    [redeeming, 'elsewhere sealed'],
    [adding, 'at-home sealed'],
    [adding, 'nowhere sealed'],
  ]
  await until(() => heard.length >= expected.length)
  assert.deepEqual(heard, expected)
})
