// Keys that an operator made up, or copied from an example, are refused before anything is encrypted with them.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'vitest'
import { parseKeyList, refuseGuessableKeys } from '../../src/wire/seal.ts'

/** As good as random, and the same in each run. */
const random = createHash('sha256').update('a key').digest()
const others = [0x00, 0x1f, 0x7f, 0x80, 0xff]

const listOf = (key: Uint8Array) => `k1:${random.toString('base64')},k2:${Buffer.from(key).toString('base64')}`
const isRefused = (key: Uint8Array): boolean => {
  try {
    refuseGuessableKeys('KEYS', listOf(key))
    return false
  } catch (error) {
    assert.ok(error instanceof Error)
    assert.equal(
      error.message,
      'KEYS holds a key that can be guessed (text, a repetition or a sequence): make one by "openssl rand -base64 32"',
    )
    return true
  }
}

test('random keys are taken', () => {
  assert.equal(isRefused(createHash('sha256').update('another').digest()), false)
  assert.deepEqual(parseKeyList('KEYS', listOf(random)), [
    { name: 'k1', key: random },
    { name: 'k2', key: random },
  ])
})

test('a key that is text is refused, one with a single byte that is none is not', () => {
  const text = Buffer.from(' q7#Zk2!mX9@bV4^tR1&nL6*pW3(hG8~')
  assert.equal(text.length, 32)
  assert.equal(isRefused(text), true)
  for (const byte of others) assert.equal(isRefused(Buffer.concat([text.subarray(1), Buffer.of(byte)])), false)
})

test('a pattern of sixteen bytes that is repeated is refused, and one more byte is enough', () => {
  const pattern = random.subarray(0, 16)
  assert.equal(new Set(pattern).size, 16)
  const repeated = Buffer.concat([pattern, pattern])
  assert.equal(isRefused(Buffer.alloc(32)), true)
  assert.equal(isRefused(repeated), true)
  assert.equal(isRefused(Buffer.concat([random.subarray(0, 17), random.subarray(1, 16)])), false)
})

test('a sequence is refused wherever it begins, upwards or downwards, and also when its steps are a pattern', () => {
  const sequence = (first: number, steps: (n: number) => number) => {
    let byte = first
    return Uint8Array.from({ length: 32 }, (_, n) => (byte = n === 0 ? first : byte + steps(n)))
  }
  for (const first of [0, 100, 0xf0])
    for (const step of [1, -1, 7]) assert.equal(isRefused(sequence(first, () => step)), true)
  const pattern = (n: number) => 3 + 2 * ((n - 1) % 16)
  assert.equal(isRefused(sequence(100, pattern)), true)
})
