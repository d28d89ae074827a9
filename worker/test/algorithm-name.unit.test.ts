// By which name an algorithm is counted.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { algorithmName, algorithmNames } from '../src/hashing/algorithm-name.ts'

test('a stored hash is counted under the algorithm that it begins with', () => {
  for (const variant of ['argon2id', 'argon2i', 'argon2d']) {
    assert.equal(algorithmName(`$${variant}$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA`), variant)
  }
  for (const version of ['2a', '2b', '2y']) assert.equal(algorithmName(`$${version}$10$abcdef`), 'bcrypt')
})

test('whatever else is stored is counted as one, and makes up no name', () => {
  for (const stored of [
    '',
    '$',
    'argon2id',
    '$2$10$abc',
    '$2x$10$abc',
    '$12a$',
    '$2ab$',
    '$made-up$',
    'x$constructor$',
  ]) {
    assert.equal(algorithmName(stored), 'other')
  }
  assert.deepEqual(algorithmNames, ['argon2id', 'argon2i', 'argon2d', 'bcrypt', 'other'])
})
