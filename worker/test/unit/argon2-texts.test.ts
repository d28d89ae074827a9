// Hashes of argon2 as other packages write them, by each engine.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { Hasher, UnsupportedHashError } from '../../src/hashing/index.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'

const policy = argon2idPolicy({ memoryKib: 256, time: 2, parallelism: 1 })

const made: [maker: string, password: string, storedHash: string][] = [
  [
    'argon2 0.45 of npm',
    'correct horse',
    '$argon2id$v=19$m=256,p=1,t=2$pyjCAFVnz8LtrvIlxaMwig$TmqxfXMObdDUDPEfhFZ5C8IcUJiSPl5uuJyJUH2yVNY',
  ],
  [
    'argon2 0.45 of npm, two lanes',
    'correct horse',
    '$argon2i$v=19$m=256,p=2,t=2$CQcdqPcLzgqk0fvXNL0zSA$C1J/X9SUX/ZH9GpjFncNnj8XqFpQ+RNLZ0HwVWASyCg',
  ],
  [
    'argon2 0.45 of npm, with associated data',
    'correct horse',
    '$argon2id$v=19$m=256,p=1,t=2,data=dGVuYW50IDc$u59ZoU6tN9ZKJFnmmqtCPg$8/v2O5HHc0BK+QhwwX3Lj9xqOnm3UT0M7i7ZA9R2bE4',
  ],
  [
    'argon2 of 2016, without a version (ranisalt/node-argon2#133)',
    'password',
    '$argon2i$m=4096,t=3,p=1$tbagT6b1YH33niCo9lVzuA$htv/k+OqWk1V9zD9k5DOBi2kcfcZ6Xu3tWmwEPV3/nc',
  ],
  [
    'the reference implementation, padded',
    'password',
    '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ=$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4=',
  ],
]

for (const native of [false, true]) {
  test(`what packages write is verified, and nothing near it${native ? ', by the native engine' : ''}`, async (context) => {
    const hasher = await Hasher.load(policy, { native })
    if (native && hasher.native === undefined) return context.skip('the native engine is not built')
    for (const [maker, password, storedHash] of made) {
      assert.equal(await hasher.verify(password, storedHash), true, maker)
      for (const wrong of [`${password}.`, '', password.toUpperCase()])
        assert.equal(await hasher.verify(wrong, storedHash), false, maker)
      await assert.rejects(hasher.verify(password, storedHash.slice(0, -2)), UnsupportedHashError, maker)
    }
    hasher.native?.close()
  })
}
