// Rounds of background work, and the pauses between them.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { Rounds } from '../../src/rounds.ts'

test('a round that fails is told of, and the next ones come all the same', async () => {
  const failures: unknown[] = []
  let begun = 0
  await new Promise<void>((resolve) => {
    const rounds = new Rounds({
      periodMs: 1,
      async round() {
        begun += 1
        if (begun === 3) {
          resolve(rounds.close())
          return
        }
        throw new Error(`round ${begun}`)
      },
      onFailure: (error) => void failures.push(error),
    })
  })
  assert.deepEqual(failures.map(String), ['Error: round 1', 'Error: round 2'])
})

test('who closes waits for the round in progress, which is told, and no other begins', async () => {
  const told: boolean[] = []
  let begun = 0
  let ended = 0
  let begin: () => void = () => undefined
  const hasBegun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const rounds = new Rounds({
    periodMs: 1,
    async round(signal) {
      begun += 1
      begin()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      await new Promise(setImmediate)
      told.push(signal.aborted)
      ended += 1
    },
    onFailure: (error) => assert.fail(String(error)),
  })
  await hasBegun
  assert.deepEqual(told, [])
  await rounds.close()
  assert.deepEqual([begun, ended, told], [1, 1, [true]])
})

test('who closes within a pause waits for nothing, and no round begins', async () => {
  let begun = 0
  const rounds = new Rounds({
    periodMs: 3_600_000,
    async round() {
      begun += 1
    },
    onFailure: (error) => assert.fail(String(error)),
  })
  await rounds.close()
  assert.equal(begun, 0)
})
