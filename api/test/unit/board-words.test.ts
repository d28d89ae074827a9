// The board's view of a job: its times and its end, and nothing made up by others.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { describeData, describeJob, describeMail, describeMailData } from '../../src/operators/board-words.ts'

const added = { name: 'verify', timestamp: 1_000 }

test('a title tells how far a job has come, and how long it took', () => {
  assert.equal(describeJob(added), 'verify')
  assert.equal(describeJob({ ...added, processedOn: null }), 'verify')
  assert.equal(describeJob({ ...added, processedOn: 1_999 }), 'verify · waited 999 ms')
  assert.equal(describeJob({ ...added, processedOn: 2_000 }), 'verify · waited 1.0 s')
  assert.equal(describeJob({ ...added, processedOn: 2_000, failedReason: 'the job is malformed' }), 'verify · failed')
  const returnvalue = { outcome: 'answered', queueWaitMs: 1_234, serviceMs: 14.4 }
  assert.equal(describeJob({ ...added, returnvalue }), 'verify · answered: waited 1.2 s, hashed in 14 ms')
  const expired = { outcome: 'expired', queueWaitMs: 60_000, serviceMs: 0 }
  assert.equal(describeJob({ ...added, name: 'hash', returnvalue: expired }), 'hash · expired: waited 60.0 s')
})

test('clocks that disagree make no time negative', () => {
  assert.equal(describeJob({ ...added, processedOn: 900 }), 'verify · waited 0 ms')
})

test('made-up outcomes and codes are not repeated', () => {
  assert.equal(describeJob({ ...added, name: '<b>secret</b>' }), 'unknown job')
  assert.equal(describeJob({ ...added, name: 'secret', failedReason: 'secret' }), 'unknown job · failed')
  assert.equal(describeJob({ ...added, returnvalue: { outcome: 'secret', queueWaitMs: 1, serviceMs: 1 } }), 'verify')
  assert.deepEqual(describeData({ secret: 1 }), { malformed: true })
})

test('of what a job carries its times are shown, where they are any', () => {
  const data = { deadline: 1_700_000_060_000, enqueuedAt: 1_700_000_000_000, replyTo: 'here', sealed: 'secret' }
  assert.deepEqual(describeData(data), {
    enqueuedAt: '2023-11-14T22:13:20.000Z',
    deadline: '2023-11-14T22:14:20.000Z',
  })
  assert.deepEqual(describeData({ ...data, enqueuedAt: -1, deadline: 1e17 }), {
    enqueuedAt: '1969-12-31T23:59:59.999Z',
    deadline: undefined,
  })
})

test('a mail that waits has no more than its name, one that is to be tried again is shown as such, and so is one that was given up', () => {
  const mail = { name: 'mail', timestamp: 1_000 }
  assert.equal(describeMail(mail), 'mail')
  assert.equal(describeMail({ ...mail, finishedOn: 2_000 }), 'mail')
  assert.equal(describeMail({ ...mail, failedReason: 'the server is away' }), 'mail · to be tried again')
  assert.equal(describeMail({ ...mail, failedReason: 'refused', finishedOn: 2_000 }), 'mail · not sent')
})

test('of what a mail carries nothing is shown but until when it may be sent', () => {
  assert.deepEqual(describeMailData({ sealed: 'secret', deadline: 1_700_000_060_000 }), {
    deadline: '2023-11-14T22:14:20.000Z',
  })
  assert.deepEqual(describeMailData({ sealed: 'secret', deadline: 'secret' }), { malformed: true })
})
