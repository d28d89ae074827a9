// Names of BullMQ's keys: we read and write some of them beside it, so they must be the ones that it uses.
import assert from 'node:assert/strict'
import { QueueKeys } from 'bullmq'
import { test } from 'vitest'
import { DEFAULT_QUEUE_PREFIX, QUEUE_NAME } from '../../src/protocol/job.ts'
import { jobKey, lockKey, queueKey } from '../../src/queue/keys.ts'

const bullmq = new QueueKeys(DEFAULT_QUEUE_PREFIX)

test('lists, sets and settings of the queue have the names that BullMQ gives them', () => {
  for (const part of ['wait', 'prioritized', 'delayed', 'active', 'completed', 'failed', 'meta'] as const)
    assert.equal(queueKey(DEFAULT_QUEUE_PREFIX, part), bullmq.getKeys(QUEUE_NAME)[part])
})

test('a job has the name that BullMQ gives it, and its lock is called after it', () => {
  const job = bullmq.toKey(QUEUE_NAME, 'a-job')
  assert.equal(jobKey(DEFAULT_QUEUE_PREFIX, 'a-job'), job)
  assert.equal(lockKey(DEFAULT_QUEUE_PREFIX, 'a-job'), `${job}:lock`)
})
