// Which line of a file had an address first, however many there are.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { Addresses } from '../../src/import.ts'

test('every address is known by its first line, beyond what the table held at first', () => {
  const addresses = new Addresses()
  const emailOf = (n: number) => `user-${n}@example.test`
  for (let n = 1; n <= 60_000; n++) assert.equal(addresses.firstLineOf(emailOf(n), n), undefined)
  for (const n of [1, 2, 11_468, 11_469, 30_000, 60_000]) assert.equal(addresses.firstLineOf(emailOf(n), 99_999), n)
})
