// Names that options do not have are told, instead of taken for not given.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { createPasswordsWith } from '../../src/application/create-passwords.ts'
import { completePolicy } from '../../src/application/options.ts'

const nowhere = new URL('file:///nowhere/beside.cjs')
/** As programs without types give them. */
const given = (options: object): object => options

test('an option that is misspelt is an error that names it, and what there is', () => {
  assert.throws(() => createPasswordsWith(nowhere, given({ polciy: {} })), {
    name: 'TypeError',
    message: /^options have no polciy: they have redis, .*policy/,
  })
  assert.throws(() => createPasswordsWith(nowhere, given({ waitMS: 1, Redis: '' })), /no waitMS, Redis:/)
})

test('so is a name of a policy', () => {
  assert.throws(
    () => completePolicy(Object.assign({ algorithm: 'bcrypt' } as const, { rounds: 12 })),
    /bcrypt have no rounds/,
  )
  const memoryCost = Object.assign({ algorithm: 'argon2id' } as const, { memoryCost: 65_536 })
  assert.throws(
    () => completePolicy(memoryCost),
    /argon2id have no memoryCost: they have algorithm, memoryKib, time, parallelism/,
  )
  assert.deepEqual(completePolicy({ algorithm: 'bcrypt', cost: 10 }), { algorithm: 'bcrypt', cost: 10 })
})
