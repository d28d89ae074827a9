import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'vitest'
import { parseKeyring, type SealContext, SealError } from '../../src/wire/seal.ts'

const [first, second, third] = Array.from({ length: 3 }, (_, i) => `key-${i}:${randomBytes(32).toString('base64')}`)
const keyring = parseKeyring(`${first}`)
const context: SealContext = { purpose: 'request', id: 'job-1', bind: ['verify', 1_700_000_000_000] }
const value = { password: 'correct horse', storedHash: null, list: [1, 'ä', { deep: true }] }

test('a sealed value opens as it was, and sealing twice gives nothing to compare', () => {
  assert.deepEqual(keyring.open(context, keyring.seal(context, value)), value)
  assert.notEqual(keyring.seal(context, value), keyring.seal(context, value))
})

test('a keyring takes another list while it is used: the new first key seals, all open, and dropped ones do not', () => {
  const rotated = parseKeyring(`${first}`)
  const sealed = rotated.seal(context, value)
  rotated.replace(`${second},${first}`)
  assert.deepEqual(rotated.kids(), ['key-1', 'key-0'])
  assert.deepEqual(rotated.open(context, sealed), value)
  assert.match(rotated.seal(context, value), /^key-1\./)
  rotated.replace(`${second}`)
  assert.throws(() => rotated.open(context, sealed), SealError)
  const lists = ['', `${second},`, `${third},${third}`, `key-3:${Buffer.alloc(32, 7).toString('base64')}`]
  // Values under the old key of that name would never open again.
  for (const list of [...lists, String(third).replace('key-2', 'key-1')])
    assert.throws(() => rotated.replace(list), /^Error: SPILLWAY_SEAL_KEYS [^\n]+$/)
  assert.deepEqual(rotated.kids(), ['key-1'])
})

const others: [what: string, context: SealContext][] = [
  ['purpose', { ...context, purpose: 'result' }],
  ['id', { ...context, id: 'job-2' }],
  ['first binding', { ...context, bind: ['hash', 1_700_000_000_000] }],
  ['number of bindings', { ...context, bind: ['verify'] }],
  ['lack of bindings', { purpose: context.purpose, id: context.id }],
  ['border between id and bindings', { ...context, id: 'job-1verify', bind: [1_700_000_000_000] }],
]

for (const [what, other] of others) {
  test(`it does not open for another ${what}, either way round`, () => {
    assert.throws(() => keyring.open(other, keyring.seal(context, value)), SealError)
    assert.throws(() => keyring.open(context, keyring.seal(other, value)), SealError)
  })
}

test('it does not open when any one byte is changed, missing or added', () => {
  const sealed = keyring.seal(context, value)
  const body = sealed.slice(sealed.indexOf('.') + 1)
  const bytes = Buffer.from(body, 'base64url')
  const wrap = (changed: Uint8Array) => `key-0.${Buffer.from(changed).toString('base64url')}`
  assert.deepEqual(keyring.open(context, wrap(bytes)), value)
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 0x01
    assert.throws(() => keyring.open(context, wrap(changed)), SealError, `byte ${at}`)
  }
  assert.throws(() => keyring.open(context, wrap(bytes.subarray(1))), SealError)
  assert.throws(() => keyring.open(context, wrap(bytes.subarray(0, -1))), SealError)
  assert.throws(() => keyring.open(context, wrap(Buffer.concat([bytes, Buffer.alloc(1)]))), SealError)
})

test('one sealed value is written in one way only', () => {
  const sealed = keyring.seal(context, value)
  for (let at = 0; at < sealed.length; at += 1) {
    for (const character of ['A', 'B', '-', '=', ' ', '\0']) {
      if (sealed[at] === character) continue
      const changed = sealed.slice(0, at) + character + sealed.slice(at + 1)
      assert.throws(() => keyring.open(context, changed), SealError, `${JSON.stringify(character)} at ${at}`)
    }
  }
  for (const added of ['=', ' ', '\n', '!', 'A']) {
    assert.throws(() => keyring.open(context, sealed + added), SealError, JSON.stringify(added))
  }
})

test('a value that was never sealed does not open', () => {
  for (const text of ['', '.', 'key-0', 'key-0.', 'key-0.AAAA', '.AAAA', `key-0.${'A'.repeat(400)}`, 'used', '{}']) {
    assert.throws(() => keyring.open(context, text), SealError, text)
  }
})

test('it opens under no other key, also of the same name', () => {
  const sealed = keyring.seal(context, value)
  assert.throws(() => parseKeyring(`${second}`).open(context, sealed), SealError)
  assert.throws(() => parseKeyring(`key-0:${randomBytes(32).toString('base64')}`).open(context, sealed), SealError)
  const renamed = parseKeyring(`${first}`.replace('key-0', 'key-9'))
  assert.throws(() => renamed.open(context, sealed.replace('key-0', 'key-9')), SealError)
})

test('a key is rotated in three steps, and at each the neighbours understand each other', () => {
  const steps = [`${first}`, `${first},${second}`, ` ${second} , ${first}`, `${second}`, `${second},${third}`]
  const keyrings = steps.map(parseKeyring)
  for (const [i, here] of keyrings.entries()) {
    const next = keyrings[i + 1] ?? here
    assert.deepEqual(next.open(context, here.seal(context, value)), value, `step ${i} to ${i + 1}`)
    assert.deepEqual(here.open(context, next.seal(context, value)), value, `step ${i + 1} to ${i}`)
  }
  assert.match(keyrings[1]?.seal(context, value) ?? '', /^key-0\./)
  assert.match(keyrings[2]?.seal(context, value) ?? '', /^key-1\./)
})

test('the length tells nothing but the number of blocks', () => {
  const lengthOf = (sealed: unknown) => keyring.seal(context, sealed).length
  const storedHash = `$argon2id$v=19$m=19456,t=2,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`
  const lengths = new Set<number>()
  for (let length = 8; length <= 100; length += 1) lengths.add(lengthOf({ password: 'x'.repeat(length), storedHash }))
  lengths.add(lengthOf({ password: 'x', storedHash: null }))
  lengths.add(lengthOf({ kind: 'mismatch' }))
  lengths.add(lengthOf({ kind: 'match', hash: storedHash }))
  assert.equal(lengths.size, 1)
  assert.notEqual(lengthOf({ password: 'x'.repeat(300) }), lengthOf({ password: 'x' }))
})

test('a bad keyring is refused with a sentence that does not repeat the key', () => {
  const short = randomBytes(31).toString('base64')
  const long = randomBytes(33).toString('base64')
  const key = randomBytes(32).toString('base64')
  const twice = `k1:${key},k1:${randomBytes(32).toString('base64')}`
  const wrong = [
    ...['', ',', short, key, `k1:${short}`, `k1:${long}`, `:${key}`, `k 1:${key}`, `k1:${key},`, `k1:${key}!`],
    ...[`k1:${key},k2`, `k1=${key}`, `${'k'.repeat(33)}:${key}`, twice],
  ]
  for (const text of wrong) {
    assert.throws(
      () => parseKeyring(text),
      ({ message }: Error) => {
        assert.match(message, /^SPILLWAY_SEAL_KEYS [^\n]+$/, text)
        for (const secret of [short, long, key]) assert.ok(!message.includes(secret.slice(0, 12)), text)
        return true
      },
      text,
    )
  }
})

test('keys are read in both alphabets of base64', () => {
  const bytes = Buffer.alloc(32, 0xfb)
  const sealed = parseKeyring(`k:${bytes.toString('base64')}`).seal(context, value)
  assert.deepEqual(parseKeyring(`k:${bytes.toString('base64url')}`).open(context, sealed), value)
})

/** The bytes 0 to 31, and 32 to 63. */
const [one, two] = [0, 32].map((first) =>
  Buffer.from(Array.from({ length: 32 }, (_, n) => first + n)).toString('base64'),
)
/**
 * HMAC-SHA256 under each, as another program computed it, of 00000001, `spillway/1/device`, 00, `a-device` and 00000100 (SP 800-108,
 * counter mode, one block).
 */
const CODE_OF_ONE = 'd171a6190480bb89fbd863009138c8b91ebd3846b1beefc6324d9e72b69c511a'
const CODE_OF_TWO = '1bd277ce4306fb2a435d9fbc153db0c468dd88ae86621ae22db24df8ba04c178'

test('an id has a code under each key of the keyring, in their order, and the same one wherever the key is', () => {
  const codes = (keys: string) =>
    parseKeyring(keys)
      .macs({ purpose: 'device', id: 'a-device' })
      .map((code) => code.toString('hex'))
  assert.deepEqual(codes(`k1:${one}`), [CODE_OF_ONE])
  assert.deepEqual(codes(`k1:${one},k2:${two}`), [CODE_OF_ONE, CODE_OF_TWO])
  assert.deepEqual(codes(`k2:${two},k1:${one}`), [CODE_OF_TWO, CODE_OF_ONE])
})
