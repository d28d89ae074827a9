// Probes of one moment share an answer.
import assert from 'node:assert/strict'
import { withResolvers } from '@spillway/common/within'
import { test } from 'vitest'
import { shareAnswer } from '../../src/http/health.ts'

test('whoever asks before an answer, or soon after it, gets that answer, and who asks later another', async () => {
  let nowMs = 0
  const asked = [withResolvers<string>(), withResolvers<string>()]
  let count = 0
  const answer = shareAnswer(
    () => asked[count++]?.promise ?? assert.fail('asked too often'),
    250,
    () => nowMs,
  )
  const early = Promise.all(Array.from({ length: 100 }, answer))
  nowMs = 60_000
  const late = answer()
  asked[0]?.resolve('first')
  assert.deepEqual([...new Set([...(await early), await late])], ['first'])
  nowMs += 249
  assert.equal(await answer(), 'first')
  nowMs += 1
  asked[1]?.resolve('second')
  assert.equal(await answer(), 'second')
  assert.equal(count, 2)
})
