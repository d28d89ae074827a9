// Waiters by job: several may wait for one, each until it lets go.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { Waiters } from '../../src/wait/answers.ts'

const job = { id: 'a-job', name: 'verify', deadline: 1 } as const
const yes = { kind: 'match' } as const
const no = { kind: 'mismatch' } as const
const data = { deadline: 1, enqueuedAt: 0, replyTo: 'here', sealed: 'sealed' }

test('all who wait for a job are one entry, there until the last of them lets go', () => {
  const waiters = new Waiters()
  const first = waiters.hold(job)
  assert.equal(waiters.hold({ ...job }), first)
  assert.deepEqual([first.job, first.data, waiters.jobIds()], [job, undefined, ['a-job']])
  assert.equal(waiters.holders(job.id), 2)
  waiters.release(job.id)
  assert.equal(waiters.get(job.id), first)
  waiters.release(job.id)
  assert.deepEqual([waiters.get(job.id), waiters.jobIds()], [undefined, []])
})

test('an answer reaches all who wait for the job, once, and nobody else', async () => {
  const waiters = new Waiters()
  const other = waiters.hold({ ...job, id: 'another' })
  const answers = [waiters.hold(job).answer, waiters.hold(job).answer]
  waiters.settle(job.id, yes)
  waiters.settle(job.id, no)
  assert.deepEqual(await Promise.all(answers), [yes, yes])
  assert.equal(await Promise.race([other.answer, 'nothing']), 'nothing')
})

test('the data of an added job is kept, to be added again until it is withdrawn; it can still be answered then', async () => {
  const waiters = new Waiters()
  const waiter = waiters.hold(job)
  waiters.added(job.id, data)
  assert.equal(waiter.data, data)
  waiters.withdraw(job.id)
  assert.deepEqual([waiter.data, waiters.holders(job.id)], [undefined, 1])
  waiters.settle(job.id, yes)
  assert.equal(await waiter.answer, yes)
})

test('for a job that nobody waits for, an answer, an addition, a withdrawal and a release change nothing', () => {
  const waiters = new Waiters()
  waiters.settle(job.id, yes)
  waiters.added(job.id, data)
  waiters.withdraw(job.id)
  waiters.release(job.id)
  assert.deepEqual([waiters.jobIds(), waiters.holders(job.id)], [[], 0])
})
