// The client's own SHA-256, against Node's.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'vitest'
import { digestBeginning } from '../../src/browser/challenge.ts'

test('it begins as the digest of Node does, for texts of none to five blocks', () => {
  for (let length = 0; length < 320; length += 1) {
    const text = Array.from({ length }, (_, n) => String.fromCharCode((n * 37 + length) % 256)).join('')
    const expected = createHash('sha256').update(text, 'latin1').digest().readUInt32BE()
    assert.equal(digestBeginning(text), expected, `${length} characters`)
  }
})
