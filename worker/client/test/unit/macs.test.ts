// Codes by which texts are known as our own: one for each key, so that a text outlives a rotation.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { parseKeyring } from '../../src/protocol/seal.ts'

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

test('an id has another code for another purpose', () => {
  const { macs } = parseKeyring(`k1:${one}`)
  assert.notDeepEqual(macs({ purpose: 'device', id: 'a-device' }), macs({ purpose: 'challenge', id: 'a-device' }))
})
