// Which texts are e-mail addresses, and in which form.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { parseEmailAddress, parseSender } from '../../src/schemas/credentials.ts'
import { addresses } from '../email-addresses.ts'

test('a text is one address or none', () => {
  assert.ok(addresses.length >= 300, `${addresses.length} texts`)
  const wrong = addresses
    .map(([text, address]) => ({ text, address, parsed: parseEmailAddress(text) }))
    .filter(({ address, parsed }) => address !== parsed)
  assert.deepEqual(wrong, [])
})

/** Refused, or ideographs and syllables that no form changes: most characters, most of the time */
const unchanged = /[\p{C}\u3400-\ua4cf\uac00-\ud7a3\u{12000}-\u{1bfff}]/u

test('the form of an address stays as it is when it is taken again', () => {
  const unstable: string[] = []
  for (let point = 0; point < 0x20000; point += 1) {
    const character = String.fromCodePoint(point)
    if (unchanged.test(character)) continue
    for (const text of [character, `a${character}\u0301`]) {
      for (const address of [`${text}@shop.test`, `a@${text}b.test`]) {
        const parsed = parseEmailAddress(address)
        if (parsed !== undefined && parseEmailAddress(parsed) !== parsed) unstable.push(address)
      }
    }
  }
  assert.deepEqual(unstable, [])
})

test('a text of any length takes no more time than reading it', () => {
  // In quadratic time each would take minutes, which is longer than a test may.
  const long = 300_000
  for (const text of [
    ' '.repeat(long),
    '@'.repeat(long),
    '.'.repeat(long),
    `"${'.'.repeat(long)}`,
    `${'a'.repeat(long)}@`,
    `a@${'a.'.repeat(long)}`,
    `a@${'\u00e9'.repeat(long)}.test`,
  ]) {
    assert.equal(parseEmailAddress(`${text}${text}\0`), undefined)
  }
})

test('a sender is an address with or without a name', () => {
  const shop = { name: 'Shop, Ltd.', address: 'no-reply@shop.test' }
  assert.deepEqual(parseSender('Shop, Ltd. <no-reply@Shop.test>'), shop)
  assert.deepEqual(parseSender('no-reply@shop.test'), { name: '', address: 'no-reply@shop.test' })
  for (const text of [
    '',
    'Shop',
    'Shop <>',
    '<no-reply@shop.test>',
    'Shop <a@b.test> <c@d.test>',
    'Shop <a@b.test>, x',
    'Shop\r\nBcc: <a@b.test>',
  ])
    assert.equal(parseSender(text), undefined, text)
})
