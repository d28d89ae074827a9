// The canary of workers' keys, by which a client notices that it has others.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'vitest'
import { areForEachOther, canaryOf } from '../../src/protocol/capacity.ts'
import { parseKeyring } from '../../src/protocol/seal.ts'

const [a, b] = ['a', 'b'].map((kid) => `${kid}:${randomBytes(32).toString('base64')}`)
const canary = (keys: string, prefix = '{spillway}') => canaryOf(parseKeyring(keys), prefix)
const fit = (one: string, other: string) => areForEachOther(canary(one), canary(other))

test('keys fit through all steps of a rotation', () => {
  for (const [one, other] of [
    [`${a}`, `${a}`],
    [`${a},${b}`, `${a}`],
    [`${b},${a}`, `${a},${b}`],
    [`${b}`, `${b},${a}`],
  ] as const) {
    assert.equal(fit(one, other), true, 'one and other')
    assert.equal(fit(other, one), true, 'other and one')
  }
})

test('keys do not fit where either side seals by a key that the other lacks', () => {
  for (const [one, other] of [
    [`${a}`, `${b}`],
    [`${b},${a}`, `${a}`],
    [`${a}`, `${b},${a}`],
  ] as const)
    assert.equal(fit(one, other), false)
  assert.equal(areForEachOther(canary(`${a}`), ''), false)
  assert.equal(areForEachOther(canary(`${a}`), 'garbage,,'), false)
})

test('a canary holds no key, and is another one for each queue', () => {
  const text = canary(`${a}`)
  assert.match(text, /^[\w-]{16}$/)
  assert.notEqual(text, canary(`${a}`, '{other}'))
  const key = Buffer.from(String(a).slice(2), 'base64')
  for (const part of [key.toString('base64url'), key.toString('hex')]) assert.ok(!part.includes(text))
})
