// Settings: hashes of which all is given, as they are written, read and sent.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { isHashRequest } from '../../src/wire/job.ts'
import {
  argon2Setting,
  bcryptSetting,
  decodeBcrypt,
  encodeBcrypt,
  newArgon2Setting,
  newBcryptSetting,
  parseSetting,
} from '../../src/wire/setting.ts'

const cost = { memoryKib: 19_456, time: 2, parallelism: 1 }

test('what is written is read again, and is salted', () => {
  const bcrypt = newBcryptSetting(5)
  assert.match(bcryptSetting(bcrypt), /^\$2b\$05\$[./A-Za-z0-9]{21}[.Oeu]$/)
  assert.deepEqual(parseSetting(bcryptSetting(bcrypt)), bcrypt)
  assert.notDeepEqual(newBcryptSetting(5), bcrypt)
  const argon2 = newArgon2Setting(cost)
  assert.match(argon2Setting(argon2), /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}$/)
  assert.deepEqual(parseSetting(argon2Setting(argon2)), argon2)
  for (const algorithm of ['argon2d', 'argon2i'] as const) {
    const older = { ...argon2, algorithm, version: 16 }
    assert.deepEqual(parseSetting(argon2Setting(older)), older)
  }
  const wide = { ...argon2, time: 10, parallelism: 16 }
  assert.deepEqual(parseSetting(argon2Setting(wide)), wide)
})

test('what is no setting is not read as one', () => {
  const bcrypt = '$2b$05$CCCCCCCCCCCCCCCCCCCCC.'
  const argon2 = '$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ'
  const wrong = [
    ...['', 'password', `x${bcrypt}`, `x${argon2}`],
    ...[bcrypt.replace('2b', '2a'), bcrypt.slice(1), `${bcrypt}.`, bcrypt.replace(/\.$/, '/')],
    ...[argon2.replace('v=19', 'v=18'), argon2.replace('id', 'x'), `${argon2}$c29t`],
    ...[argon2.replace('m=64', 'm=-64'), `${argon2}=`, `${argon2}\n`, argon2.replace('c29tZXNhbHQ', 'c29t')],
  ]
  for (const text of wrong) assert.equal(parseSetting(text), undefined, text)
})

test('base64 of bcrypt has its own alphabet', () => {
  const bytes = Buffer.from('101112131415161718191a1b1c1d1e1f', 'hex')
  assert.equal(encodeBcrypt(Buffer.alloc(16)), '.'.repeat(22))
  assert.equal(encodeBcrypt(Buffer.alloc(3, 0xff)), '9999')
  assert.deepEqual(decodeBcrypt(encodeBcrypt(bytes)), bytes)
})

test('requests carry a setting with the password as bytes, or are malformed', () => {
  const exact = { setting: '$2b$05$CCCCCCCCCCCCCCCCCCCCC.', password: 'AP8=' }
  assert.equal(isHashRequest({ password: '', exact }), true)
  assert.equal(
    isHashRequest({ password: '', exact: { ...exact, digestBytes: 64, secret: '', associatedData: '' } }),
    true,
  )
  for (const wrong of [{}, null, { setting: exact.setting }, { ...exact, digestBytes: '64' }, { ...exact, secret: 1 }])
    assert.equal(isHashRequest({ password: '', exact: wrong }), false, JSON.stringify(wrong))
})
