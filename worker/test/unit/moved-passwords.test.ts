// Passwords that new hashes must not lose: longer than bcrypt reads, or peppered with bytes.
import assert from 'node:assert/strict'
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import bcrypt from 'bcrypt'
import { test } from 'vitest'
import { Hasher } from '../../src/hashing/index.ts'
import { performHash, performVerify } from '../../src/hashing/perform.ts'
import { asPolicy } from '../../src/hashing/policy.ts'

const argon2id = { algorithm: 'argon2id', memoryKib: 64, time: 1, parallelism: 1 } as const
const policy = asPolicy({ algorithm: 'bcrypt', cost: 4 }, 'always', argon2id)
const refused = () => undefined
const long = 'a pass phrase of the old system '.repeat(4)
const OF_LONG = /^\$argon2id\$v=19\$m=64,t=1,p=1\$/

test('with bcrypt a right password that it would cut is hashed with argon2id: of other formats', async () => {
  const hasher = await Hasher.load(policy, {})
  const verify = async (storedHash: string | null, password: string, request = {}) =>
    (await performVerify({ password, storedHash, ...request }, { hasher, refused })).result
  const pbkdf2 = pbkdf2Sync(long, 'salt', 1_000, 32, 'sha256').toString('base64')
  const result = await verify(`pbkdf2_sha256$1000$salt$${pbkdf2}`, long)
  assert.ok(result.kind === 'match' && result.hash !== undefined)
  assert.match(result.hash, OF_LONG)
  // It stays, also where every other algorithm is replaced.
  assert.deepEqual(await verify(result.hash, long), { kind: 'match' })
  assert.deepEqual(await verify(result.hash, `${long}.`), { kind: 'mismatch' })
  // A sender's own policy is kept to, and new passwords are refused as before.
  const theirs = { policy: { algorithm: 'bcrypt', cost: 4 } }
  assert.deepEqual(await verify(`pbkdf2_sha256$1000$salt$${pbkdf2}`, long, theirs), { kind: 'match' })
  const refusal = await performHash({ password: long }, { hasher, refused })
  assert.deepEqual(refusal.result, { kind: 'refused', code: 'unsupported_password' })
})

test('a pepper is bytes: one that is no UTF-8 matches, and what a decoder puts in its place does not', async () => {
  const secret = Buffer.from('ff01fe80', 'hex')
  const hasher = await Hasher.load(policy, { peppers: [{ name: 'old', secret }] })
  const password = 'Correct <horse>'
  const peppered = Buffer.concat([Buffer.from(password), secret])
  const escaped = Buffer.concat([Buffer.from('Correct &lt;horse&gt;'), secret])
  const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
  const lower = Buffer.concat([Buffer.from(password.toLowerCase()), secret])
  const rows: [steps: string, hashed: Buffer | string][] = [
    ['pepper:old', peppered],
    ['pepper:old,sha256', sha256(peppered)],
    ['html,pepper:old', escaped],
    ['pepper:old,html', escaped],
    ['pepper:old,lower', lower],
    ['pepper:old,trim,nfc', peppered],
    ['hmac-sha256:old', createHmac('sha256', secret).update(password).digest('hex')],
    ['pepper:old,hmac-sha256:old', createHmac('sha256', secret).update(peppered).digest('hex')],
  ]
  for (const [steps, hashed] of rows) {
    const storedHash = `$of$${steps}$${await bcrypt.hash(hashed, 4)}`
    assert.equal(await hasher.verify(password, storedHash), true, steps)
    assert.equal(await hasher.verify(`${password}.`, storedHash), false, steps)
  }
  const replaced = `$of$pepper:old$${await bcrypt.hash(password + secret.toString(), 4)}`
  assert.equal(await hasher.verify(password, replaced), false)
  // Inside a format that digests first.
  const digested = await bcrypt.hash(sha256(peppered), 4)
  assert.equal(await hasher.verify(password, `$of$pepper:old$bcrypt_sha256$${digested}`), true)
})
