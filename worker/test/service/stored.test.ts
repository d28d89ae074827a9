// The traces of jobs that others can read in Redis: keys and messages, and their names.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { queueKey } from '@spillway/queue/keys'
import { DEFAULT_QUEUE_PREFIX } from '@spillway/queue/wire/job'
import { resultKey } from '@spillway/queue/wire/reply'
import { Redis } from 'ioredis'
import { test } from 'vitest'
import { Hasher } from '../../src/hashing/index.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { clientAndWorker, clientFor, policy, readyClient, resultOf, startedWorker, submit } from '../parts.ts'
import { completionOf, jobKey, type Space, spaceFor, whenFailed } from '../space.ts'

const hasher = await Hasher.load(argon2idPolicy(policy), {})

/** Everything that stands under the prefix, as text. */
async function dump({ redis, prefix }: Space): Promise<string> {
  const read: Record<string, (key: string) => Promise<unknown>> = {
    string: (key) => redis.get(key),
    hash: (key) => redis.hgetall(key),
    list: (key) => redis.lrange(key, 0, -1),
    set: (key) => redis.smembers(key),
    zset: (key) => redis.zrange(key, '0', '-1'),
    stream: (key) => redis.xrange(key, '-', '+'),
  }
  const keys = await redis.keys(`${prefix}*`)
  const values = await Promise.all(
    keys.map(async (key) => {
      const type = await redis.type(key)
      const value = await read[type]?.(key)
      // Its life may end after the list of keys was read.
      if (value === null || type === 'none') return []
      return [key, value ?? assert.fail(`${key} could not be read`)]
    }),
  )
  return JSON.stringify(values)
}

/** Every message that is published under the prefix from now on. */
async function listen(space: Space): Promise<string[]> {
  const messages: string[] = []
  const listener = new Redis(space.redisUrl)
  space.closing(async () => listener.disconnect())
  listener.on('pmessage', (_pattern, channel, message) => {
    messages.push(`${channel} ${message}`)
  })
  await listener.psubscribe(`${space.prefix}*`)
  return messages
}

test('no password, hash or result stands in Redis in clear: waiting, answered, failed or announced', async (t) => {
  const space = spaceFor(t)
  const messages = await listen(space)
  const client = await readyClient(space)
  const secrets = {
    right: 'correct-horse-1',
    wrong: 'battery-staple-2',
    next: 'next-password-3',
    fresh: 'fresh-hash-4',
  }
  const storedHash = await hasher.hash(secrets.right)
  const pending = [
    await submit(client, 'verify', { password: secrets.right, storedHash }),
    await submit(client, 'verify', { password: secrets.wrong, storedHash }),
    await submit(client, 'verify', { password: secrets.right, storedHash, nextPassword: secrets.next }),
    await submit(client, 'hash', { password: secrets.fresh }),
    await submit(client, 'verify', { password: secrets.wrong, storedHash: 'unsupported-hash-5' }),
  ]
  const forged = await submit(client, 'verify', { password: secrets.wrong, storedHash })
  await space.redis.hset(jobKey(space, forged.job.id), 'name', 'hash')
  const dumps = [await dump(space)]

  await startedWorker(space)
  const answers = await Promise.all(pending.map((one) => resultOf(one)))
  await whenFailed(space, forged.job.id)
  await until(() => completionOf(space, pending.at(-1)?.job.id ?? ''))
  dumps.push(await dump(space))

  const hashes = answers.flatMap((answer) => (typeof answer === 'object' && 'hash' in answer ? [answer.hash] : []))
  assert.equal(hashes.length, 2)
  const text = dumps.join('\n') + messages.join('\n')
  for (const { job } of pending) assert.ok(text.includes(resultKey(space.prefix, job.id)), 'the result was looked at')
  assert.equal(messages.length, pending.length)
  const inClear = [...Object.values(secrets), storedHash, ...hashes, 'unsupported-hash-5', '$argon2', 'mismatch']
  for (const secret of inClear.filter((secret) => secret !== undefined)) {
    for (const form of [secret, Buffer.from(secret).toString('base64url'), Buffer.from(secret).toString('hex')])
      assert.ok(!text.includes(form), `${secret} stands there`)
  }
})

test('a finished job does not tell a right password from a wrong one', async (t) => {
  const { space, client } = await clientAndWorker(t)
  const storedHash = await hasher.hash('right')
  const kept = []
  for (const password of ['right', 'wrong']) {
    const { job } = await submit(client, 'verify', { password, storedHash })
    await until(() => completionOf(space, job.id))
    const { data, returnvalue, ...others } = await space.redis.hgetall(jobKey(space, job.id))
    const result = await space.redis.get(resultKey(space.prefix, job.id))
    kept.push({
      fields: Object.keys(others).sort(),
      result: Object.keys(JSON.parse(returnvalue ?? '')),
      outcome: JSON.parse(returnvalue ?? '').outcome,
      lengths: [data?.length, result?.length],
    })
  }
  assert.deepEqual(kept[0], kept[1])
})

test('every key stands under the prefix, and nothing but finished jobs and counters outlives its deadline', async (t) => {
  const { space, client } = await clientFor(t)
  const worker = await startedWorker(space)
  const pending = await submit(client, 'hash', { password: 'x' }, { lifeMs: 5_000 })
  await resultOf(pending)
  await worker.close()
  await until(() => client.now() > pending.job.deadline + 1_000)
  const names = (await space.redis.keys(`${space.prefix}*`)).map((key) => key.slice(space.prefix.length))
  const known = /^:sealing$|^:passwords:(events|id|meta|marker|stalled-check|stalled|completed|failed|[0-9a-f-]{36})$/
  const unknown = names.filter((name) => !known.test(name))
  assert.deepEqual(unknown, [])
})

test("jobs wait in the list that the autoscaler watches: the prefix's own, by default {spillway}:passwords:wait", async (t) => {
  const { space, client } = await clientFor(t)
  const { job } = await submit(client, 'hash', { password: 'x' })
  assert.deepEqual(await space.redis.lrange(`${space.prefix}:passwords:wait`, 0, -1), [job.id])
  assert.equal(queueKey(DEFAULT_QUEUE_PREFIX, 'wait'), '{spillway}:passwords:wait')
  assert.equal(queueKey(DEFAULT_QUEUE_PREFIX, 'active'), '{spillway}:passwords:active')
})
