// The password as typed beside its normal form: which is tried when, and which is hashed anew.
import assert from 'node:assert/strict'
import bcrypt from 'bcrypt'
import { test } from 'vitest'
import { escapedHtml, slashed } from '../../src/hashing/formats/envelopes.ts'
import { Hasher } from '../../src/hashing/index.ts'
import { performVerify } from '../../src/hashing/perform.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'

const load = () => Hasher.load(argon2idPolicy({ memoryKib: 64, time: 1, parallelism: 1 }), {})
const hasher = await load()
const refused = (error: unknown) => assert.fail(String(error))
const awkward = ['Passwort²', '½ litre', 'caf\u0065\u0301', '10\u00a0%', 'ｐａｓｓ', '5 µm', '´quoted´']

const formsOf = (typed: string) => ({ password: typed.normalize('NFKC'), typed })
const verify = async (storedHash: string | null, forms: { password: string; typed?: string }) =>
  (await performVerify({ ...forms, storedHash }, { hasher, refused })).result

test('a hash of what was typed matches, and the new hash is of the normal form', async () => {
  for (const typed of awkward) {
    const forms = formsOf(typed)
    assert.notEqual(forms.password, typed)
    const result = await verify(await bcrypt.hash(typed, 4), forms)
    assert.ok(result.kind === 'match' && result.hash !== undefined, typed)
    assert.equal(await hasher.verify(forms.password, result.hash), true)
    assert.equal(await hasher.verify(typed, result.hash), false)
    assert.deepEqual(await verify(result.hash, forms), { kind: 'match' })
    assert.deepEqual(await verify(await bcrypt.hash(`${typed}.`, 4), forms), { kind: 'mismatch' })
  }
})

test('both forms are tried where they differ, for dummy hashes as well; else one', async () => {
  const calls: string[] = []
  const counting = Object.assign(await load(), {
    verify: (forms: string | readonly string[]) => {
      calls.push(`verify ${[forms].flat().length}`)
      return Promise.resolve(false)
    },
    dummy: () => Promise.resolve(void calls.push('dummy')),
  })
  const ask = async (storedHash: string | null, forms: { password: string; typed?: string }) => {
    calls.length = 0
    await performVerify({ ...forms, storedHash }, { hasher: counting, refused })
    return [...calls]
  }
  const stored = await hasher.hash('x')
  assert.deepEqual(await ask(stored, { password: 'plain' }), ['verify 1'])
  assert.deepEqual(await ask(null, { password: 'plain' }), ['dummy'])
  assert.deepEqual(await ask(stored, formsOf('Passwort²')), ['verify 2'])
  assert.deepEqual(await ask(null, formsOf('Passwort²')), ['dummy', 'dummy'])
})

test('WordPress: slashes before quotes, by its old hashes and its new ones, and those of passwords that no form sent', async () => {
  const typed = `it's a "test" \\`
  assert.equal(slashed(typed), `it\\'s a \\"test\\" \\\\`)
  // From WordPress itself: $P$ and $wp$ of the slashed text.
  const rows = ['$P$BsaltsalttEXY.U4uN2zQkn0E7kMTw0', '$wp$2y$04$saltsaltsaltsaltsaltsu/kTf1g.ca2DSiBV1qhahBdofNdjJ82K']
  for (const storedHash of rows) {
    const result = await verify(storedHash, { password: `it's a "test"` })
    assert.ok(result.kind === 'match' && result.hash !== undefined)
    assert.equal(await hasher.verify(`it's a "test"`, result.hash), true)
    assert.deepEqual(await verify(storedHash, { password: 'its a test' }), { kind: 'mismatch' })
  }
})

test('WordPress since 6.8 trims: who types blanks gets in, and no new hash locks out who does not, nor who does', async () => {
  // Of "lead and trail", which WordPress made of the text with blanks.
  const storedHash = '$wp$2y$06$xTQ6HmZcuRBC1P4UD0MsE.79w1anfCKFVg2IT3x/kJQOWtXj6DXHa'
  for (const password of ['  lead and trail  ', 'lead and trail ', '\tlead and trail'])
    assert.deepEqual(await verify(storedHash, { password }), { kind: 'match' })
  const result = await verify(storedHash, { password: 'lead and trail' })
  assert.ok(result.kind === 'match' && result.hash !== undefined)
  assert.equal(await hasher.verify('lead and trail', result.hash), true)
  assert.deepEqual(await verify(storedHash, { password: 'lead  and trail' }), { kind: 'mismatch' })
})

test('phpBB escapes what HTML does not take as it is', async () => {
  const typed = 'test1&test1 <3 "x"'
  assert.equal(escapedHtml(typed), 'test1&amp;test1 &lt;3 &quot;x&quot;')
  const result = await verify('$H$9saltsaltqnbig.p1K/xkYMTPsD4hC0', { password: typed })
  assert.ok(result.kind === 'match' && result.hash !== undefined)
  assert.equal(await hasher.verify(typed, result.hash), true)
})
