// A worker with the native engine, which hashes several jobs at a time. Skipped without it.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { until } from '@spillway/infra/processes/until'
import type { PasswordClient } from '@spillway/queue/client'
import { test } from 'vitest'
import { ADDON_FILE } from '../../src/hashing/native.ts'
import { clientFor, resultOf, startedWorker, submit } from '../parts.ts'

const skip = existsSync(ADDON_FILE) ? false : 'worker/engine has not been built here: that takes cargo'

/** Of bcrypt, of which every processor does several in little more than the time of one. */
const storedHash = '$2b$08$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'

async function verify(client: PasswordClient): Promise<void> {
  // A hundred at once may take a busy machine longer than a minute.
  const answer = await resultOf(await submit(client, 'verify', { password: 'wrong', storedHash }), 110_000)
  assert.equal(typeof answer === 'object' && answer.kind, 'mismatch')
}

test.skipIf(skip)(
  'under load a worker has full batches in hand, and publishes what a slot takes for each of them',
  async (t) => {
    const { space, client } = await clientFor(t)
    await startedWorker(space, { slots: 1 })
    await until(() => client.estimates.load().workers === 1)
    await verify(client)
    let isSeen = false
    const clients = Array.from({ length: 100 }, async () => {
      while (!isSeen) await verify(client)
    })
    try {
      // One batch in work and one behind it, of two at least, share the time of the slot.
      await until(() => client.estimates.load().active >= 4, { what: 'two batches in hand' })
      await until(() => client.estimates.load().latencyMs > 3 * client.estimates.load().serviceMs, {
        what: 'the capacity of batches',
      })
    } finally {
      isSeen = true
      await Promise.all(clients)
    }
  },
)

test.skipIf(skip)('jobs that come one by one tell the capacity of full batches as well', async (t) => {
  const { space, client } = await clientFor(t)
  await startedWorker(space, { slots: 1 })
  for (let n = 0; n < 20; n += 1) await verify(client)
  // A machine that stands still meanwhile changes either average for a while.
  await until(async () => {
    await verify(client)
    const { workers, latencyMs, serviceMs } = client.estimates.load()
    if (workers === 1 && serviceMs < 0.7 * latencyMs) return true
    throw new Error(`${workers} workers, ${serviceMs} ms of a slot, ${latencyMs} ms until the hash`)
  })
})
