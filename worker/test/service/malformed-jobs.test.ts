// An attacker queues entries that BullMQ cannot parse: each is removed once, and harms no job.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { queueKey } from '@spillway/queue/jobs/keys'
import { test } from 'vitest'
import {
  answerOf,
  clientAndWorker,
  clientFor,
  jobsCounted,
  keepingLog,
  type SaidLine,
  startedWorker,
} from '../parts.ts'
import { activeJobs, jobKey, type Space, waitingJobs } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-token$' }
const match = { kind: 'match' }

/** A job as BullMQ stores it, but for its contents. */
const fields = { name: 'verify', data: '{}', opts: '{"attempts":0}', timestamp: '1', delay: '0', priority: '0' }

interface Forgery {
  what: string
  write(space: Space, key: string): Promise<unknown>
}

const texts: Record<string, string[]> = {
  data: ['{', 'nan', '{"a":nan}', '{"a":1}x', '\0'],
  opts: ['{', 'null', '{"a":0x10}', '{"removeOnFail":{"age":"x"}}', '{"parent":{"id":"1","queue":"x"}}'],
  parent: ['{', 'x', '{"id":1,"queueKey":"x"}'],
  progress: ['{', 'x'],
  ats: ['x', '1.5', '9223372036854775807', ''],
  rjk: ['some-scheduler', 'verify:1::: 0 * * * *'],
}
const ofFields: Forgery[] = Object.entries(texts).flatMap(([field, values]) =>
  values.map((text) => ({
    what: `${JSON.stringify(text)} for ${field}`,
    write: ({ redis }, key) => redis.hset(key, { ...fields, [field]: text }),
  })),
)
const ofTypes: Forgery[] = [
  { what: 'a string for a hash', write: ({ redis }, key) => redis.set(key, 'x') },
  { what: 'a list for a hash', write: ({ redis }, key) => redis.lpush(key, 'x') },
  { what: 'a set for a hash', write: ({ redis }, key) => redis.sadd(key, 'x') },
  { what: 'a sorted set for a hash', write: ({ redis }, key) => redis.zadd(key, 1, 'x') },
  { what: 'a stream for a hash', write: ({ redis }, key) => redis.xadd(key, '*', 'x', 'x') },
]

/** Writes one job of each forgery, and returns their ids. */
async function write(space: Space, forgeries: Forgery[]): Promise<string[]> {
  return Promise.all(
    forgeries.map(async (forgery) => {
      const id = randomUUID()
      await forgery.write(space, jobKey(space, id))
      return id
    }),
  )
}

/** Resolves when nothing waits or is active. */
async function emptied(space: Space): Promise<void> {
  await until(async () => (await waitingJobs(space)).length + (await activeJobs(space)).length === 0, {
    what: 'a queue without forged jobs',
  })
}

for (const forgery of [...ofFields, ...ofTypes]) {
  test.concurrent(`jobs with ${forgery.what} are gone once they are met, and the true ones are answered`, async (t) => {
    const { space, client } = await clientFor(t)
    const held = await client.submit('verify', request)
    const deferred = await client.submit('verify', request, { lane: 'deferred' })
    const ids = await write(space, [forgery, forgery, forgery])
    await space.redis.rpush(queueKey(space.prefix, 'wait'), ...ids)
    const worker = await startedWorker(space)
    assert.deepEqual(await answerOf(held), match)
    assert.deepEqual(await answerOf(deferred), match)
    await emptied(space)
    const failed = await space.redis.zmscore(queueKey(space.prefix, 'failed'), ...ids)
    for (const [n, id] of ids.entries()) {
      assert.equal(await space.redis.exists(jobKey(space, id)), failed[n] === null ? 0 : 1, 'forgotten, or failed')
      assert.equal(await space.redis.exists(`${jobKey(space, id)}:lock`), 0)
    }
    assert.match((await jobsCounted(worker)).join(), /unknown forged [3-6]\b/)
  })
}

test.concurrent('three hundred of them at once, and again, are one line of the log each time, and logins go on', async (t) => {
  const { space, client } = await clientFor(t)
  const { lines, log } = keepingLog()
  const worker = await startedWorker(space, { log })
  const isRemoval = ({ msg }: SaidLine) => msg === 'malformed jobs removed'
  const complaints = () => lines.filter(({ level }) => level === 'warn' || level === 'error')
  const unreadable = [...ofFields.filter(({ what }) => /"(\{|x|nan)" for/.test(what)), ...ofTypes]
  const crowd = Array.from({ length: 300 }, (_, n) => unreadable[n % unreadable.length]).filter(
    (one) => one !== undefined,
  )
  for (const round of [1, 2]) {
    const ids = await write(space, crowd)
    const answers = Array.from({ length: 20 }, async () => answerOf(await client.submit('verify', request)))
    await space.redis.rpush(queueKey(space.prefix, 'wait'), ...ids)
    for (const answer of answers) assert.deepEqual(await answer, match)
    await emptied(space)
    assert.equal(await space.redis.exists(...ids.map((id) => jobKey(space, id))), 0)
    await until(async () => (await jobsCounted(worker)).includes(`unknown forged ${round * 300}`))
    // The line is written after the jobs are counted.
    await until(() => complaints().filter(isRemoval).length >= round)
  }
  assert.deepEqual(
    complaints()
      .filter(isRemoval)
      .map(({ code, count }) => ({ code, count })),
    Array.from({ length: 2 }, () => ({ code: 'forged_job', count: 300 })),
  )
  // A busy machine may stop a worker for longer than its locks last: a line for a job in hand.
  assert.ok(complaints().length < 12, `${complaints().length} lines`)
})

test.concurrent('they are removed from where no worker takes jobs too, once they are in its way', async (t) => {
  const { space, client } = await clientAndWorker(t)
  const sets = ['completed', 'failed', 'delayed'] as const
  for (const set of sets) {
    for (const id of await write(space, ofTypes)) await space.redis.zadd(queueKey(space.prefix, set), 0, id)
  }
  assert.deepEqual(await answerOf(await client.submit('verify', request)), match)
  await until(async () => {
    const counts = await Promise.all(sets.map((set) => space.redis.zcount(queueKey(space.prefix, set), 0, 0)))
    return counts.every((count) => count === 0)
  })
  await emptied(space)
})

test.concurrent("an entry that has the name of one of the queue's own keys does not have that key deleted", async (t) => {
  const { space, client } = await clientFor(t)
  const pending = await client.submit('verify', request)
  const events = await space.redis.xlen(jobKey(space, 'events'))
  await space.redis.rpush(queueKey(space.prefix, 'wait'), 'events')
  await startedWorker(space)
  assert.deepEqual(await answerOf(pending), match)
  await emptied(space)
  assert.ok((await space.redis.xlen(jobKey(space, 'events'))) > events)
})
