// What an answer to a challenge must look like: nothing of a challenge can be changed, and none is solved by less than its work.
import assert from 'node:assert/strict'
import { parseKeyring } from '@spillway/queue/queue-client'
import { test } from 'vitest'
import { ProofOfWork } from '../../src/plugins/guessing/challenges.ts'
import { solve, solveNot } from '../solve.ts'

const nowMs = 1_790_000_000_000
const keyring = parseKeyring(`k1:${Buffer.alloc(32, 1).toString('base64')}`)
const workOf = (bits: number) => new ProofOfWork(keyring, { bits, nowMs: () => nowMs })
/** Of no work: any text solves it. */
const free = workOf(0)
const { token } = free.issue('ada', 0)

test('a challenge tells its work and its life, and a solved one its id and what is left of that', () => {
  const issued = workOf(3).issue('ada', 0)
  assert.deepEqual([issued.bits, issued.expiresIn], [3, 300])
  const [id, expiresAtS, bits, signature] = issued.token.split('.')
  assert.deepEqual([expiresAtS, bits], [String(nowMs / 1_000 + 300), '3'])
  // Gateways of two versions read each other's.
  const [code] = keyring.macs({ purpose: 'challenge', id: JSON.stringify(['ada', id, expiresAtS, '3']) })
  assert.equal(signature, code.toString('base64url'))
  assert.deepEqual(workOf(3).check('ada', solve(issued)), { id, leftMs: 300_000 })
})

test('less than its work solves no challenge, also where that has two digits', () => {
  for (const bits of [3, 10]) {
    const issued = workOf(bits).issue('ada', 0)
    assert.ok(workOf(bits).check('ada', solve(issued)))
    assert.equal(workOf(bits).check('ada', solveNot(issued)), undefined)
  }
})

test('an answer is a challenge and up to 64 characters, and nothing before, after or between', () => {
  for (const text of ['0', 'a-_Z', 'x'.repeat(64)]) assert.ok(free.check('ada', `${token}.${text}`), text)
  for (const answer of [
    '',
    token,
    `${token}.`,
    `${token}.${'x'.repeat(65)}`,
    `x${token}.0`,
    `${token}.0!`,
    `${token}.0\n`,
  ])
    assert.equal(free.check('ada', answer), undefined, answer)
})

test('a challenge with less work, a longer life or another id than was signed is none', () => {
  const [id = '', expiresAtS = '', bits = '', signature = ''] = workOf(10).issue('ada', 0).token.split('.')
  const forged = [
    [id, expiresAtS, '0', signature],
    [id, String(Number(expiresAtS) + 1), '0', signature],
    [`A${id.slice(1)}` === id ? `B${id.slice(1)}` : `A${id.slice(1)}`, expiresAtS, bits, signature],
    [id, expiresAtS, bits, 'A'.repeat(43)],
  ]
  for (const parts of forged) {
    const [, , claimed = ''] = parts
    assert.equal(workOf(10).check('ada', solve({ token: parts.join('.'), bits: Number(claimed) })), undefined)
  }
})
