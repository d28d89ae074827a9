// The traces of jobs that others can read in Redis: keys and messages, and their names.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { queueKey } from '@spillway/queue/jobs/keys'
import { DEFAULT_QUEUE_PREFIX } from '@spillway/queue/wire/job'
import { verdictKey } from '@spillway/queue/wire/reply'
import { Redis } from 'ioredis'
import { test } from 'vitest'
import { Hasher } from '../../src/hashing/index.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { answerOf, clientAndWorker, clientFor, policy, readyClient, startedWorker } from '../parts.ts'
import { failureOf, jobKey, resultOf, type Space, spaceFor, waitingJobs } from '../space.ts'

const hasher = await Hasher.load(argon2idPolicy(policy), { testHashes: false })

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

test('no password, hash or verdict stands in Redis in clear: waiting, answered, failed or announced', async (t) => {
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
    await client.submit('verify', { password: secrets.right, storedHash }),
    await client.submit('verify', { password: secrets.wrong, storedHash }),
    await client.submit('verify', { password: secrets.right, storedHash, nextPassword: secrets.next }),
    await client.submit('hash', { password: secrets.fresh }),
    await client.submit('verify', { password: secrets.wrong, storedHash: 'unsupported-hash-5' }),
  ]
  const forged = await client.submit('verify', { password: secrets.wrong, storedHash })
  await space.redis.hset(jobKey(space, forged.job.id), 'name', 'hash')
  const dumps = [await dump(space)]

  await startedWorker(space)
  const answers = await Promise.all(pending.map((one) => answerOf(one)))
  await until(() => failureOf(space, forged.job.id))
  await until(() => resultOf(space, pending.at(-1)?.job.id ?? ''))
  dumps.push(await dump(space))

  const hashes = answers.flatMap((answer) => (typeof answer === 'object' && 'hash' in answer ? [answer.hash] : []))
  assert.equal(hashes.length, 2)
  const text = dumps.join('\n') + messages.join('\n')
  for (const { job } of pending) assert.ok(text.includes(verdictKey(space.prefix, job.id)), 'the verdict was looked at')
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
    const { job } = await client.submit('verify', { password, storedHash })
    await until(() => resultOf(space, job.id))
    const { data, returnvalue, ...others } = await space.redis.hgetall(jobKey(space, job.id))
    const verdict = await space.redis.get(verdictKey(space.prefix, job.id))
    kept.push({
      fields: Object.keys(others).sort(),
      result: Object.keys(JSON.parse(returnvalue ?? '')),
      outcome: JSON.parse(returnvalue ?? '').outcome,
      lengths: [data?.length, verdict?.length],
    })
  }
  assert.deepEqual(kept[0], kept[1])
})

test('every key stands under the prefix, and nothing but finished jobs and counters outlives its deadline', async (t) => {
  const { space, client } = await clientFor(t, { jobLifeMs: 500 })
  const worker = await startedWorker(space)
  const pending = await client.submit('hash', { password: 'x' })
  await answerOf(pending)
  await worker.close()
  await until(() => client.now() > pending.job.deadline + 20)
  const names = (await space.redis.keys(`${space.prefix}*`)).map((key) => key.slice(space.prefix.length))
  const known = /^:canary$|^:passwords:(events|id|meta|marker|stalled-check|stalled|completed|failed|[0-9a-f-]{36})$/
  const unknown = names.filter((name) => !known.test(name))
  assert.deepEqual(unknown, [])
})

test("jobs wait in the list that the autoscaler watches: the prefix's own, by default {spillway}:passwords:wait", async (t) => {
  const { space, client } = await clientFor(t)
  const { job } = await client.submit('hash', { password: 'x' })
  assert.deepEqual(await space.redis.lrange(`${space.prefix}:passwords:wait`, 0, -1), [job.id])
  assert.equal(queueKey(DEFAULT_QUEUE_PREFIX, 'wait'), '{spillway}:passwords:wait')
  assert.equal(queueKey(DEFAULT_QUEUE_PREFIX, 'active'), '{spillway}:passwords:active')
})

test('a client that is told no prefix uses the default one', async (t) => {
  const space = spaceFor(t)
  // A database of its own: other tests and other runs may use the default prefix in theirs.
  const redisUrl = new URL(space.redisUrl)
  redisUrl.pathname = '/9'
  const redis = new Redis(redisUrl.href)
  space.closing(async () => {
    await redis.del(await redis.keys('{spillway}:passwords:*'))
    redis.disconnect()
  })
  const elsewhere = { ...space, redis, redisUrl: redisUrl.href, prefix: '{spillway}' }
  const client = await readyClient({ ...elsewhere }, { prefix: DEFAULT_QUEUE_PREFIX })
  const { job } = await client.submit('hash', { password: 'x' })
  assert.ok((await redis.lrange('{spillway}:passwords:wait', 0, -1)).includes(job.id))
  assert.equal(await client.cancel(job), true)
  assert.ok(!(await waitingJobs(elsewhere)).includes(job.id))
})
