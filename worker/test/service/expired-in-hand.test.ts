// A job whose deadline passes while it waits for a hashing thread of the native engine. Skipped where that has not been built.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { until } from '@spillway/local/testing'
import { test } from 'vitest'
import { ADDON_FILE } from '../../src/hashing/addon-file.ts'
import { answerOf, jobsAreCounted, readyClient, startedWorker } from '../parts.ts'
import { activeJobs, spaceFor } from '../space.ts'

const skip = existsSync(ADDON_FILE) ? false : 'worker/engine has not been built here: that takes cargo'

/** Takes a second or two, and then more of them in one batch. */
const dear = '$2b$14$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
const LIFE_MS = 500

test.skipIf(skip)(
  'a job in hand that no thread has begun with at its deadline is dropped, and not hashed',
  async (t) => {
    const space = spaceFor(t)
    // It has as many jobs in hand as two slots take, with one thread.
    const client = await readyClient(space)
    const worker = await startedWorker(space, { slots: 2 })
    await until(() => client.load().workers === 1)
    const dearOnes = await Promise.all(
      Array.from({ length: 2 }, () => client.submit('verify', { password: 'wrong', storedHash: dear })),
    )
    await until(async () => (await activeJobs(space)).length === 2, { what: 'threads that are busy' })
    const late = await client.submit('verify', { password: 'wrong', storedHash: dear }, 'held', LIFE_MS)
    for (const pending of dearOnes) assert.notEqual(await answerOf(pending), undefined)
    assert.equal(await answerOf(late, 1), undefined)
    await jobsAreCounted(worker, 'verify expired 1', 'verify hashed 2')
  },
)
