// BullMQ looks for locks to renew only while a job is in hand: the hook fits its version.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { withResolvers } from '@spillway/common/within'
import { until } from '@spillway/infra/processes/until'
import { renewLocksOfJobsAlone } from '@spillway/queue/inside/bullmq'
import { Queue, Worker } from 'bullmq'
import { test } from 'vitest'
import { spaceFor } from '../space.ts'

const RENEWAL_MS = 20

test('no lock is looked for at rest, and the lock of a job is renewed until it ends', async (t) => {
  const { redisUrl, prefix, closing } = spaceFor(t)
  const ending = withResolvers<void>()
  const worker = new Worker('locks', () => ending.promise, {
    connection: { url: redisUrl, maxRetriesPerRequest: null },
    prefix,
    autorun: false,
    lockRenewTime: RENEWAL_MS,
  })
  const queue = new Queue('locks', { connection: { url: redisUrl }, prefix })
  closing(() => Promise.all([worker.close(), queue.close()]))
  renewLocksOfJobsAlone(worker)
  const locks: unknown = Reflect.get(worker, 'lockManager')
  assert.ok(locks instanceof Object)
  const timer = (): unknown => Reflect.get(locks, 'lockRenewalTimer')

  void worker.run()
  await worker.waitUntilReady()
  await sleep(RENEWAL_MS)
  assert.equal(timer(), undefined)

  let renewed = 0
  worker.on('locksRenewed', ({ count }: { count: number }) => {
    renewed += count
  })
  await queue.add('job', {})
  await until(() => renewed >= 2)
  ending.resolve()
  await until(async () => (await queue.getCompletedCount()) === 1)
  const last = timer()
  await sleep(4 * RENEWAL_MS)
  assert.equal(timer(), last, 'no further look after the last job')
})
