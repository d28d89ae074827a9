// Data of other processes: a newer one may write fields that an older one does not know, and must not leave any out.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { isJobData, isResult, isVerifyRequest } from '../../src/wire/job.ts'
import { checkFor } from '../../src/wire/schema.ts'

const jobData = { deadline: 2, enqueuedAt: 1, presentUntil: 2, replyTo: 'here', sealed: 'x' }

test('fields that are not known are taken out, at every kind of a result', () => {
  const data = { ...jobData, since: 'version 2' }
  assert.equal(isJobData(data), true)
  assert.deepEqual(data, jobData)
  const hash = 'h'
  for (const known of [{ kind: 'hashed', hash }, { kind: 'match', hash }, { kind: 'match' }, { kind: 'mismatch' }]) {
    const result = { ...known, since: 'version 2' }
    assert.equal(isResult(result), true)
    assert.deepEqual(result, known)
  }
})

test('fields that are missing, of another type, too long or of an unknown kind are refused', () => {
  const { sealed: _, ...withoutSeal } = jobData
  const wrongFields = [{ deadline: '2' }, { replyTo: 'x'.repeat(65) }].map((field) => ({ ...jobData, ...field }))
  for (const wrong of [withoutSeal, ...wrongFields, [], null, 'x']) assert.equal(isJobData(wrong), false)
  for (const wrong of [{ kind: 'maybe' }, { kind: 'hashed' }, { kind: 'refused', code: 'tired' }, {}, [], null])
    assert.equal(isResult(wrong), false)
  assert.equal(isVerifyRequest({ password: 'p', storedHash: null }), true)
  assert.equal(isVerifyRequest({ password: 'p' }), false)
})

test('a schema with a word that means nothing is refused when it is compiled', () => {
  assert.throws(() => checkFor({ type: 'string', maxlength: 64 }), /maxlength/)
})
