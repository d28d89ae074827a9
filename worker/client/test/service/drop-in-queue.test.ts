// Drop-in replacements with a queue: workers make what the packages make, by the same settings.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createPasswordsWith, type ExactPasswords } from '@spillway/client/application/create-passwords'
import * as ourArgon2 from '@spillway/client/argon2'
import * as ourBcrypt from '@spillway/client/bcrypt'
import { readEnvironment, sharePasswords } from '@spillway/client/shared-passwords'
import argon2 from 'argon2'
import bcrypt from 'bcrypt'
import { test, vi } from 'vitest'
import { jobsAreCounted, sealKeys, workerFor } from '../../../test/parts.ts'
import type { Space } from '../../../test/space.ts'
import { noProgram, rejectsWith, silent } from '../passwords.ts'

const run = promisify(execFile)
const salt = '$2a$04$CCCCCCCCCCCCCCCCCCCCC.'
const given = { memoryCost: 64, timeCost: 1, parallelism: 1, salt: Buffer.from('0123456789abcdef') }
const bytes = Buffer.from('00ff9f92d30180c0ffee', 'hex')

function environment({ redisUrl, prefix }: Space): Record<string, string> {
  return { REDIS_URL: redisUrl, SPILLWAY_QUEUE_PREFIX: prefix, SPILLWAY_SEAL_KEYS: sealKeys, SPILLWAY_WAIT_MS: '60000' }
}

function passwordsOf(space: Space): ExactPasswords {
  const passwords = createPasswordsWith(noProgram, { ...readEnvironment(environment(space)), log: silent })
  space.closing(() => passwords.close())
  sharePasswords(passwords)
  return passwords
}

test('bcrypt: salts and bytes that are given reach the worker, and ordinary logins are verified there', async (t) => {
  const { space, worker } = await workerFor(t)
  const ours = ourBcrypt
  const passwords = passwordsOf(space)
  for (const data of ['correct horse', bytes, 'a\0b', 'x'.repeat(100)]) {
    const hash = await ours.hash(data, salt)
    assert.equal(hash, await bcrypt.hash(data, salt))
    assert.equal(await ours.compare(data, hash), true)
    assert.equal(await ours.compare('another', hash), false)
  }
  // What is no text is hashed by its setting and compared here.
  await jobsAreCounted(worker, 'hash hashed 6', 'verify hashed 6')
  assert.equal(passwords.capacity().by, 'workers')
})

test('argon2: secrets, salts, associated data and other lengths that are given reach the worker', async (t) => {
  const { space } = await workerFor(t)
  const ours = ourArgon2
  passwordsOf(space)
  const secret = Buffer.from('pepper')
  const all = [{}, { secret }, { associatedData: bytes }, { hashLength: 64, type: argon2.argon2i }, { version: 16 }]
  for (const options of all.map((each) => ({ ...given, ...each }))) {
    const hash = await ours.hash(bytes, options)
    // This version of the package writes the parameters in another order.
    assert.equal(hash.replace('p=1,t=1', 't=1,p=1'), await argon2.hash(bytes, options))
    assert.equal(await ours.verify(hash, bytes, options), true)
    assert.equal(await ours.verify(hash, 'another', options), false)
  }
})

test('a password that is longer than a job may be is refused at once', async (t) => {
  const { space } = await workerFor(t)
  const passwords = passwordsOf(space)
  const long = 'x'.repeat(30_000)
  await rejectsWith('unsupported_password', ourArgon2.hash(long, given))
  await rejectsWith('unsupported_password', passwords.hash(long))
  await rejectsWith('unsupported_password', passwords.verify(long, null))
})

const script = (call: string) => `
  const { createPasswordsWith } = await import('@spillway/client/application/create-passwords')
  const bcrypt = await import('@spillway/client/bcrypt')
  const { readEnvironment, sharePasswords } = await import('@spillway/client/shared-passwords')
  const log = { error() {}, warn() {}, info() {}, debug() {} }
  const options = { ...readEnvironment(process.env), log }
  const passwords = createPasswordsWith(new URL('file:///nowhere'), options)
  sharePasswords(passwords)
  console.log(await ${call}.catch((error) => error.code))`

async function runToItsEnd(call: string, env: Record<string, string>): Promise<string> {
  const args = ['--input-type=module', '-e', script(call)]
  const { stdout } = await run(process.execPath, args, { cwd: import.meta.dirname, env, timeout: 120_000 })
  return stdout.trim()
}

test('an application that does not close ends when it has nothing more to do', async (t) => {
  const { space } = await workerFor(t)
  assert.match(await runToItsEnd("bcrypt.hash('x', 4)", environment(space)), /^\$2b\$04\$.{53}$/)
})

test('the environment: without seal keys no queue, and all that is wrong is told together, without values', () => {
  const redis = 'redis://127.0.0.1:6379'
  assert.equal(readEnvironment({ REDIS_URL: redis }).redis, undefined)
  assert.deepEqual(readEnvironment({ REDIS_URL: redis, SPILLWAY_SEAL_KEYS: sealKeys, SPILLWAY_CONCURRENCY: '2' }), {
    redis,
    sealKeys,
    queuePrefix: undefined,
    waitMs: undefined,
    concurrency: 2,
    inProcess: undefined,
  })
  assert.equal(readEnvironment({ SPILLWAY_WAIT_MS: 'Infinity' }).waitMs, Number.POSITIVE_INFINITY)
  const two = { REDIS_URL: 'redis://application:1', SPILLWAY_REDIS_URL: redis, SPILLWAY_SEAL_KEYS: sealKeys }
  assert.equal(readEnvironment(two).redis, redis)
  const wrong = {
    SPILLWAY_SEAL_KEYS: sealKeys,
    SPILLWAY_QUEUE_PREFIX: 'hush',
    SPILLWAY_WAIT_MS: 'hush',
    SPILLWAY_CONCURRENCY: '0',
  }
  assert.throws(
    () => readEnvironment(wrong),
    (error: Error) => {
      for (const name of Object.keys(wrong).slice(1)) assert.match(error.message, new RegExp(name))
      assert.match(error.message, /SPILLWAY_REDIS_URL/)
      assert.doesNotMatch(error.message, /hush/)
      return true
    },
  )
})

test('settings that are wrong reject each call', async () => {
  await ourBcrypt.close()
  vi.stubEnv('SPILLWAY_WAIT_MS', 'long')
  await assert.rejects(ourBcrypt.hash('x', 4), /SPILLWAY_WAIT_MS must be/)
  assert.equal(await ourBcrypt.compare('x', 'no hash'), false)
  vi.unstubAllEnvs()
})
