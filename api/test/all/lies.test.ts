// Lies in Redis, in place of any key or in it: everything works again soon, by itself.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { lies, openLiedTo } from '../lies.ts'

const { redis, queuePrefix, begun, everythingWorks, connections, keys, close } = await openLiedTo()
afterAll(close)

// First: what the lies below leave in `active` is only taken from there by the stall recovery of BullMQ.
for (const queue of ['passwords', 'mail']) {
  test(`jobs of ${queue} that cannot be read are removed, and the others are done`, async () => {
    const ids = Array.from({ length: 5 }, () => randomUUID())
    for (const id of ids) await redis.lpush(`${queuePrefix}:${queue}:${id}`, 'no job')
    await redis.rpush(`${queuePrefix}:${queue}:wait`, ...ids)
    await everythingWorks()
    const left = async () => (await redis.lrange(`${queuePrefix}:${queue}:active`, 0, -1)).length
    await until(async () => (await left()) === 0, { what: 'no jobs in hand' })
    const kept = () => redis.exists(...ids.map((id) => `${queuePrefix}:${queue}:${id}`))
    await until(async () => (await kept()) === 0, { what: 'the end of the unreadable jobs' })
  })
}

for (const { what, tell } of lies) {
  test(`${what}, for every key at once: everything works again by itself, on the connections there were`, async () => {
    await begun()
    const all = await keys()
    assert.ok(all.length > 60, `${all.length} keys`)
    const before = connections()
    await Promise.all(all.map((key) => tell(redis, key)))
    await everythingWorks()
    assert.equal(connections(), before, 'connections that were opened')
  })
}
