// What refresh tokens are made of.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { parseKeyring } from '@spillway/queue/client'
import { test } from 'vitest'
import {
  digest,
  familyOf,
  newRefreshToken,
  newSalt,
  RefreshTokenTags,
  sessionNameOf,
  successorOf,
} from '../../src/sessions/sessions.ts'

const secretOf = (token: string) => Buffer.from(token.split('.')[2] ?? '', 'base64url')

test('a token has 256 random bits, and so has its successor', () => {
  const sessionId = randomUUID()
  const tokens = Array.from({ length: 1_000 }, () => newRefreshToken(sessionId))
  const successors = tokens.map((token) => successorOf(token, newSalt()))
  const secrets = [...tokens, ...successors].map(secretOf)
  for (const secret of secrets) assert.equal(secret.length, 32)
  assert.equal(new Set(secrets.map((secret) => secret.toString('hex'))).size, 2_000)
})

test('a token tells its session, and the digest of its family, which its successors share', () => {
  const sessionId = randomUUID()
  const token = newRefreshToken(sessionId)
  const family = { sessionId, familyHash: digest(token.split('.')[1] ?? '') }
  assert.deepEqual(familyOf(token), family)
  assert.deepEqual(familyOf(successorOf(token, newSalt())), family)
  assert.notDeepEqual(familyOf(newRefreshToken(sessionId)), family)
})

test('the same token has the same successor under the same salt, as another program computes it', () => {
  const token = `${'A'.repeat(22)}.${'B'.repeat(22)}.${'C'.repeat(43)}`
  const secret = 'FqQVNNZZV0yb9HywQI5UDBZnDIRJZ8xRtmrgVYhK6IU'
  assert.equal(successorOf(token, Buffer.alloc(32, 7)), `${'A'.repeat(22)}.${'B'.repeat(22)}.${secret}`)
  assert.notEqual(successorOf(token, newSalt()), successorOf(token, newSalt()))
  assert.equal(newSalt().length, 32)
})

test('a session is called the same by all tokens of a family, tagged or not', () => {
  const token = newRefreshToken(randomUUID())
  const [tags] = tagsBy('1')
  assert.equal(sessionNameOf(token), Buffer.from(digest(token.split('.')[1] ?? '')).toString('base64url'))
  assert.equal(sessionNameOf(successorOf(token, newSalt())), sessionNameOf(token))
  assert.equal(sessionNameOf(tags?.tag(token) ?? ''), sessionNameOf(token))
})

/** Tags by keyrings that are written as the numbers of their keys. */
function tagsBy(...keyrings: string[]) {
  return keyrings.map((numbers) => {
    const keys = [...numbers].map((n) => `k${n}:${Buffer.alloc(32, Number(n)).toString('base64')}`)
    return new RefreshTokenTags(parseKeyring(keys.join()))
  })
}

test('a tag is ours by every key of the keyring, and by the first key where it is made', () => {
  const [before, during, after, stranger] = tagsBy('1', '21', '2', '3')
  const token = newRefreshToken(randomUUID())
  const [old = '', mid = ''] = [before?.tag(token), during?.tag(token)]
  assert.deepEqual(
    [before, during, after, stranger].map((each) => each?.untag(old)),
    [token, token, undefined, undefined],
  )
  assert.deepEqual(
    [before, during, after, stranger].map((each) => each?.untag(mid)),
    [undefined, token, token, undefined],
  )
})

test('a token without its tag, with the tag of another token, or changed in any character is not ours', () => {
  const [tags] = tagsBy('12')
  assert.ok(tags)
  const [token, other] = [newRefreshToken(randomUUID()), newRefreshToken(randomUUID())]
  const [shown, tag] = [tags.tag(token), tags.tag(other).slice(-22)]
  assert.equal(tags.untag(shown), token)
  const cut = Array.from({ length: shown.length }, (_, n) => shown.slice(0, n))
  const changed = Array.from(token, (each, n) => `${shown.slice(0, n)}${each === 'A' ? 'B' : 'A'}${shown.slice(n + 1)}`)
  const forged = [`${token}.`, `${token}.${tag}`, `${token}.${'A'.repeat(22)}`, `${shown}A`, `${shown}\n`, ` ${shown}`]
  const otherParts = [successorOf(token, newSalt()), other].map((each) => `${each}.${shown.slice(-22)}`)
  for (const text of [...cut, ...changed, ...forged, ...otherParts]) assert.equal(tags.untag(text), undefined, text)
})
