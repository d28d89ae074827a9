import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { isLoopback } from '@spillway/common/settings'
import { assertSecretFiles } from '@spillway/infra/test/secret-files'
import { test } from 'vitest'
import { readWorkerConfig, WorkerConfig } from '../../src/config.ts'

const sealKeys = `k1:${randomBytes(32).toString('base64')}`

test('numbers and flags are read from their text, and names of others are passed over', () => {
  const config = readWorkerConfig({
    SPILLWAY_SEAL_KEYS: sealKeys,
    OPS_PORT: '0',
    ARGON2_TIME: '3',
    DATABASE_URL: 'postgresql://elsewhere',
  })
  assert.equal(config.opsPort, 0)
  assert.equal(config.argon2Time, 3)
  assert.ok(!('databaseUrl' in config))
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

test('each secret of a worker may come from a file', () => {
  const env = {
    ...{ SPILLWAY_SEAL_KEYS: sealKeys, REDIS_URL: 'redis://ann:pass@cache', PASSWORD_PEPPERS: 'old:c2VjcmV0' },
    ...{ FIREBASE_SIGNER_KEY: randomBytes(64).toString('base64') },
  }
  assertSecretFiles(WorkerConfig, env, readWorkerConfig)
})

test('a host is this machine by its name or its address, not by the beginning of one', () => {
  for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '::1', '[::1]']) assert.equal(isLoopback(host), true, host)
  const others = ['127.mail.example.com', 'localhost.example.com', '10.127.0.1', '127.0.0.1.example.com', '::', '']
  for (const host of others) assert.equal(isLoopback(host), false, host)
})

test('seal keys that can be guessed are refused', () => {
  const guessable = `${sealKeys},k2:${Buffer.alloc(32, 7).toString('base64')}`
  assert.throws(() => readWorkerConfig({ SPILLWAY_SEAL_KEYS: guessable }), /SPILLWAY_SEAL_KEYS.*guessed/)
})
