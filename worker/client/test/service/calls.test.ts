// The traces of an application's calls, its settings, and passwords hashed in its process.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createPasswordsWith } from '@spillway/client/application/create-passwords'
import { readEnvironment } from '@spillway/client/shared-passwords'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import { newSealKey } from '@spillway/infra/start/secrets'
import { type TestContext, test } from 'vitest'
import { jobKey, spaceFor, waitingJobs } from '../../../test/space.ts'
import { argon2id, besideProgram, noProgram, passwordsOf, rejectsWith, silent } from '../passwords.ts'

function inPlace(t: TestContext, options = {}, program = besideProgram) {
  const own = { inProcess: true, policy: argon2id, waitMs: 60_000, log: silent }
  const passwords = createPasswordsWith(program, { ...own, ...options })
  t.onTestFinished(() => passwords.close())
  return passwords
}

test('code that does not load is told by its code', async (t) => {
  await rejectsWith('no_worker', inPlace(t, {}, noProgram).hash('x'))
})

test('SPILLWAY_IN_PROCESS says it to the replacements', () => {
  assert.equal(readEnvironment({ SPILLWAY_IN_PROCESS: 'true' }).inProcess, true)
  assert.equal(readEnvironment({ SPILLWAY_IN_PROCESS: 'false' }).inProcess, false)
  assert.equal(readEnvironment({}).inProcess, undefined)
  assert.throws(() => readEnvironment({ SPILLWAY_IN_PROCESS: 'yes' }), /SPILLWAY_IN_PROCESS must be true or false/)
})

test('the keys and the Redis server of the replacements may come from files', async (t) => {
  const dir = await scratchDir(t)
  const [keysFile, redisFile] = [join(dir, 'keys'), join(dir, 'redis')]
  const sealKeys = newSealKey()
  writeFileSync(keysFile, `${sealKeys}\n`)
  writeFileSync(redisFile, 'redis://ann:pass@cache\n')
  const env = { SPILLWAY_SEAL_KEYS_FILE: keysFile, REDIS_URL_FILE: redisFile }
  const { redis, sealKeys: read } = readEnvironment(env)
  assert.deepEqual({ redis, read }, { redis: 'redis://ann:pass@cache', read: sealKeys })
  const twice = { ...env, SPILLWAY_SEAL_KEYS: sealKeys, REDIS_URL_FILE: '/nowhere/hush' }
  assert.throws(
    () => readEnvironment(twice),
    /^Error: SPILLWAY_SEAL_KEYS and SPILLWAY_SEAL_KEYS_FILE are both set[^/]*$/,
  )
})

test('the trace context of a call is with its job, and nothing else that is given for one', async (t) => {
  const space = spaceFor(t)
  const context = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  for (const given of [context, undefined, '', `${context}x`, 'secret']) {
    const passwords = passwordsOf(space, { traceparent: () => given })
    await until(() => passwords.capacity().known)
    const caller = new AbortController()
    const ended = assert.rejects(passwords.hash('x', argon2id, { signal: caller.signal }), /was seen/)
    const [id = ''] = await until(async () => {
      const jobs = await waitingJobs(space)
      return jobs.length > 0 ? jobs : undefined
    })
    const { tm } = JSON.parse((await space.redis.hget(jobKey(space, id), 'opts')) ?? '')
    assert.equal(tm, given === context ? JSON.stringify({ traceparent: context }) : undefined)
    caller.abort(new Error('was seen'))
    await ended
    await until(async () => (await waitingJobs(space)).length === 0)
  }
})
