import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { isLoopback } from '@spillway/common/settings'
import { assertSecretFiles } from '@spillway/infra/test/secret-files'
import { assertSettingsTable } from '@spillway/infra/test/settings-table'
import { refuseGuessableKeys } from '@spillway/queue/wire/seal'
import { test } from 'vitest'
import { readWorkerConfig, WorkerConfig } from '../../src/config.ts'

const sealKeys = `k1:${randomBytes(32).toString('base64')}`

const defaults = {
  REDIS_URL: 'redis://127.0.0.1:6379',
  QUEUE_PREFIX: '{spillway}',
  ARGON2_MEMORY_KIB: 19_456,
  ARGON2_TIME: 2,
  ARGON2_PARALLELISM: 1,
  HASH_ALGORITHM: 'argon2id',
  BCRYPT_COST: 12,
  REHASH: 'weaker',
  OPS_HOST: '127.0.0.1',
  OPS_PORT: 9465,
  SHUTDOWN_GRACE_MS: 10_000,
  LOG_LEVEL: 'info',
  SPILLWAY_TEST_HASHES: false,
}

test('only the seal keys have to be given; everything else has the default that is documented', () => {
  const config = readWorkerConfig({ SPILLWAY_SEAL_KEYS: sealKeys })
  assert.equal(config.SPILLWAY_SEAL_KEYS, sealKeys)
  assert.deepEqual({ ...config, ...defaults }, config)
})

test('numbers and flags are read from their text, and names of others are passed over', () => {
  const config = readWorkerConfig({
    SPILLWAY_SEAL_KEYS: sealKeys,
    OPS_PORT: '0',
    ARGON2_TIME: '3',
    SPILLWAY_TEST_HASHES: 'true',
    DATABASE_URL: 'postgresql://elsewhere',
  })
  assert.equal(config.OPS_PORT, 0)
  assert.equal(config.ARGON2_TIME, 3)
  assert.equal(config.SPILLWAY_TEST_HASHES, true)
  assert.ok(!('DATABASE_URL' in config))
})

test('everything wrong is named together, and no value is repeated', () => {
  const wrong = {
    REDIS_URL: 'redis://ann:hush-redis@',
    QUEUE_PREFIX: 'hush-prefix',
    SPILLWAY_SEAL_KEYS: 'k1:hush-key',
    ARGON2_MEMORY_KIB: '7',
    ARGON2_TIME: '2.5',
    ARGON2_PARALLELISM: '17',
    HASH_ALGORITHM: 'hush-algorithm',
    BCRYPT_COST: '18',
    REHASH: 'hush-mode',
    FIREBASE_SIGNER_KEY: 'hush-signer',
    FIREBASE_SALT_SEPARATOR: 'hush!',
    OPS_PORT: '65536',
    SHUTDOWN_GRACE_MS: '-1',
    LOG_LEVEL: 'hush-level',
    WORKER_CONCURRENCY: '0',
    CPU_LIMIT_MILLICORES: '1.5',
    SPILLWAY_TEST_HASHES: 'hush-flag',
  }
  assert.throws(
    () => readWorkerConfig(wrong),
    ({ message }: Error) => {
      for (const name of Object.keys(wrong)) assert.ok(message.includes(name), `${name} is not named`)
      assert.doesNotMatch(message, /hush|65536|2\.5|1\.5|\n/)
      return true
    },
  )
})

test('seal keys that a person made are refused, wherever they stand in the list, and random ones are not', () => {
  const bytes = (byteAt: (n: number) => number) => Buffer.from(Array.from({ length: 32 }, (_, n) => byteAt(n) & 0xff))
  const guessable = {
    'one byte': bytes(() => 0),
    counting: bytes((n) => n),
    'counting down by threes': bytes((n) => 250 - 3 * n),
    text: Buffer.from('a passphrase that has 32 letters'),
    'hexadecimal text': Buffer.from(randomBytes(16).toString('hex')),
    'half a key twice': Buffer.concat(Array(2).fill(randomBytes(16))),
    'a word again and again': Buffer.from('\xffsecret\x00'.repeat(4), 'latin1'),
    'few bytes': bytes((n) => (n * n) % 7),
  }
  for (const [what, key] of Object.entries(guessable)) {
    for (const list of [`k1:${key.toString('base64')}`, `${sealKeys},k2:${key.toString('base64url')}`]) {
      assert.throws(
        () => readWorkerConfig({ SPILLWAY_SEAL_KEYS: list }),
        ({ message }: Error) => /SPILLWAY_SEAL_KEYS.*guessed/.test(message) && !message.includes(list.slice(-20)),
        what,
      )
    }
  }
  for (let n = 0; n < 1_000; n += 1)
    refuseGuessableKeys('SPILLWAY_SEAL_KEYS', `k${n}:${randomBytes(32).toString('base64')}`)
})

test('each secret of a worker may come from a file', () => {
  const env = {
    ...{ SPILLWAY_SEAL_KEYS: sealKeys, REDIS_URL: 'redis://ann:pass@cache', PASSWORD_PEPPERS: 'old:c2VjcmV0' },
    ...{ FIREBASE_SIGNER_KEY: randomBytes(64).toString('base64'), LEGACY_VERIFY_URL: 'https://old.test' },
    LEGACY_VERIFY_KEY: randomBytes(32).toString('base64'),
  }
  assertSecretFiles(WorkerConfig, env, readWorkerConfig)
})

test('a missing name is named with the wrong ones', () => {
  assert.throws(() => readWorkerConfig({ OPS_PORT: 'x' }), /SPILLWAY_SEAL_KEYS.*OPS_PORT|OPS_PORT.*SPILLWAY_SEAL_KEYS/)
})

test('test hashes are refused in production', () => {
  const env = { SPILLWAY_SEAL_KEYS: sealKeys, SPILLWAY_TEST_HASHES: 'true' }
  assert.throws(() => readWorkerConfig({ ...env, NODE_ENV: 'production' }), /SPILLWAY_TEST_HASHES.*production/)
  assert.equal(readWorkerConfig({ ...env, NODE_ENV: 'test' }).SPILLWAY_TEST_HASHES, true)
})

test('a host is this machine by its name or its address, not by the beginning of one', () => {
  for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '::1', '[::1]']) assert.equal(isLoopback(host), true, host)
  const others = ['127.mail.example.com', 'localhost.example.com', '10.127.0.1', '127.0.0.1.example.com', '::', '']
  for (const host of others) assert.equal(isLoopback(host), false, host)
})

test('passwords are sent to the old system by https alone, or on this machine', () => {
  const read = (url: string) => () =>
    readWorkerConfig({
      SPILLWAY_SEAL_KEYS: sealKeys,
      LEGACY_VERIFY_URL: url,
      LEGACY_VERIFY_KEY: randomBytes(32).toString('base64'),
    })
  const good = ['', 'https://old.example.com/verify', 'http://localhost/', 'http://127.0.0.1:8080/x', 'http://[::1]/x']
  for (const url of good) assert.equal(read(url)().LEGACY_VERIFY_URL, url)
  const wrong = [
    'http://localhost:x@10.255.255.1/',
    'http://127.0.0.1:80@10.255.255.1/',
    'http://[::1]@10.255.255.1/',
    'http://localhost.example.com/',
    'http://localhost@example.com/',
    'http://127.0.0.1.example.com/',
    'http://10.255.255.1/',
    'https://user:secret@old.example.com/',
    'https://',
    'ftp://localhost/',
  ]
  for (const url of wrong) assert.throws(read(url), /LEGACY_VERIFY_URL/, url)
})

test("the worker's README has every setting, with default, bounds and meaning", () =>
  assertSettingsTable(new URL('../../README.md', import.meta.url), WorkerConfig))
