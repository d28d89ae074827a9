// Versions side by side: what an earlier version compiled to (infra/local/versions/older.tgz) talks to what is here, both ways.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { startProcess, unpackOlderVersion, until } from '@spillway/infra/rig'
import { afterAll, test } from 'vitest'
import { passwordsOf } from '../application.ts'
import { answerOf, readyClient, sealKeys, startedWorker, workerEnvironment } from '../parts.ts'
import { spaceFor } from '../space.ts'

const run = promisify(execFile)

const older = await unpackOlderVersion()
afterAll(() => older.close())

/** bcrypt of `right`, at cost 4. */
const stored = '$2b$04$aFu/6hE6KsmKW6dioDx0/.IMW4l40x6esYzs8A1UrxgTRci6vATWW'

test('an older worker answers the client of today', async (t) => {
  const space = spaceFor(t)
  const worker = startProcess({ entry: older.worker, env: workerEnvironment(space) })
  space.closing(() => worker.close())
  await worker.waitForLog(({ msg }) => msg === 'worker ready')
  const client = await readyClient(space)
  const pending = [
    await client.submit('verify', { password: 'right', storedHash: stored, rehash: false }),
    await client.submit('verify', { password: 'wrong', storedHash: stored, rehash: false }),
    await client.submit('verify', { password: 'right', storedHash: stored, rehash: false, upgrade: 'always' }),
    await client.submit('verify', { password: 'right', storedHash: null }),
    await client.submit('hash', { password: 'right' }),
  ]
  const verdicts = (await Promise.all(pending.map((one) => answerOf(one)))).map((verdict) => verdict?.kind)
  assert.deepEqual(verdicts, ['match', 'mismatch', 'match', 'mismatch', 'hashed'])

  const passwords = passwordsOf(space, { policy: { algorithm: 'bcrypt', cost: 4 } })
  await until(() => passwords.capacity().slots > 0, { what: 'the older worker' })
  assert.equal(await passwords.verify('right', stored), true)
  assert.equal(await passwords.verify('wrong', stored), false)
  assert.match(await passwords.hash('right'), /^\$2b\$04\$/)
})

test('a worker of today answers an older client', async (t) => {
  const space = spaceFor(t)
  await startedWorker(space)
  const door = pathToFileURL(older.client).href
  const program = `
    import { createPasswordClient, parseKeyring } from '${door}'
    const log = { error: console.error, warn: console.error, info() {}, debug() {} }
    const { REDIS_URL: redisUrl, QUEUE_PREFIX: prefix, SPILLWAY_SEAL_KEYS: keys, STORED: storedHash } = process.env
    const client = createPasswordClient({ redisUrl, prefix, keyring: parseKeyring(keys), jobLifeMs: 60_000, log })
    while (client.load().workers === 0) await new Promise((resolve) => setTimeout(resolve, 50))
    const verdicts = []
    for (const request of [
      ['verify', { password: 'right', storedHash }],
      ['verify', { password: 'wrong', storedHash }],
      ['verify', { password: 'right', storedHash: null }],
      ['hash', { password: 'right' }],
    ]) {
      const pending = await client.submit(...request)
      const { kind, hash } = await pending.answer({ waitMs: 60_000 })
      verdicts.push([kind, hash?.slice(0, 10)])
    }
    console.log(JSON.stringify(verdicts))
    await client.close()`
  const env = { REDIS_URL: space.redisUrl, QUEUE_PREFIX: space.prefix, SPILLWAY_SEAL_KEYS: sealKeys, STORED: stored }
  const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '--eval', program], { env })
  assert.equal(stderr, '')
  assert.deepEqual(JSON.parse(stdout), [
    // A match of a hash that is weaker than the policy of the worker comes with a new one.
    ['match', '$argon2id$'],
    ['mismatch', null],
    ['mismatch', null],
    ['hashed', '$argon2id$'],
  ])
})
