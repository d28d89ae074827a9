// What an application is answered is the same by workers, a process beside it, and its own process.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createPasswordsWith, type ExactPasswords } from '@spillway/client/application/create-passwords'
import type { PasswordsOptions } from '@spillway/client/application/types'
import { type TestContext, test } from 'vitest'
import { jobsAreCounted, workerFor } from '../../../test/parts.ts'
import { argon2id, bcryptHash, besideProgram, besides, passwordsOf, rejectsWith, silent } from '../passwords.ts'

type Open = (options?: PasswordsOptions) => ExactPasswords

/** Each way of hashing; the options are the application's. */
const backends: Record<string, (t: TestContext) => Promise<Open>> = {
  async workers(t) {
    const { space } = await workerFor(t, { slots: 1, env: { ARGON2_TIME: '3' } })
    return (options) => passwordsOf(space, options)
  },
  'a process beside': async (t) => opener(t, {}),
  'its own process': async (t) => opener(t, { inProcess: true }),
}

function opener(t: TestContext, own: PasswordsOptions): Open {
  return (options) => {
    const all = { policy: argon2id, waitMs: 100_000, log: silent, concurrency: 1, ...own, ...options }
    const passwords = createPasswordsWith(besideProgram, all)
    t.onTestFinished(() => passwords.close())
    return passwords
  }
}

/** As directories store it (RFC 2307). */
function saltedSha(password: string): string {
  const digest = createHash('sha1').update(`${password}salt`).digest()
  return `{SSHA}${Buffer.concat([digest, Buffer.from('salt')]).toString('base64')}`
}

for (const [name, start] of Object.entries(backends)) {
  test(`by ${name}: hashes are of the policy or the call, a wrong password and an unknown user do not match`, async (t) => {
    const passwords = (await start(t))()
    const made = [
      [await passwords.hash('correct horse'), /^\$argon2id\$v=19\$m=64,t=1,p=1\$/],
      [await passwords.hash('correct horse', { algorithm: 'bcrypt', cost: 4 }), /^\$2b\$04\$[./A-Za-z0-9]{53}$/],
      [await passwords.hash('correct horse', { algorithm: 'bcrypt', cost: 5 }), /^\$2b\$05\$[./A-Za-z0-9]{53}$/],
    ] as const
    for (const [stored, form] of made) {
      assert.match(stored, form)
      assert.equal(await passwords.verify('correct horse', stored), true)
      assert.equal(await passwords.verify('correct hors', stored), false)
    }
    assert.equal(await passwords.verify('correct horse', null), false)
    assert.equal(passwords.capacity().by, name === 'workers' ? 'workers' : 'process')
    assert.equal((await besides()).length, name === 'a process beside' ? 1 : 0)
  })

  test(`by ${name}: a match is hashed anew by the policy where it was weaker, for calls that take the new hash`, async (t) => {
    const open = await start(t)
    const rehashes = async (options: PasswordsOptions, storedHash = bcryptHash, password = 'U*U'): Promise<string> => {
      const taken: string[] = []
      const passwords = open(options)
      assert.equal(await passwords.verify(password, storedHash, { onRehash: (hash) => void taken.push(hash) }), true)
      await passwords.close()
      return taken.join()
    }
    const bcrypt = (cost: number) => ({ policy: { algorithm: 'bcrypt', cost } }) as const
    assert.match(await rehashes({}), /^\$argon2id\$v=19\$m=64,t=1,p=1\$[^,]*$/)
    assert.match(await rehashes(bcrypt(6)), /^\$2b\$06\$[^,]*$/)
    assert.equal(await rehashes(bcrypt(5)), '')
    assert.equal(await rehashes({ rehash: 'never' }), '')
    // bcrypt reads 72 bytes of a password.
    const [whole, longer] = ['x'.repeat(72), 'x'.repeat(73)]
    assert.match(await rehashes(bcrypt(4), saltedSha(whole), whole), /^\$2b\$04\$/)
    assert.equal(await rehashes(bcrypt(4), saltedSha(longer), longer), '')
    const onRehash = () => Promise.reject(new Error('no space left'))
    await assert.rejects(open().verify('U*U', bcryptHash, { onRehash }), /no space left/)
  })

  test(`by ${name}: text that is no hash matches nothing; callers and the log are told why, without the text`, async (t) => {
    const logged: object[] = []
    const log = { ...silent, warn: (facts: object, message: string) => void logged.push({ ...facts, message }) }
    const passwords = (await start(t))({ log })
    const others = ['$', '$3$$28a2c136292ce315d52ff11996252808', bcryptHash.slice(1), `${bcryptHash}.`, '\0', '\ud800']
    const tooCostly = [
      bcryptHash.replace('$05$', '$18$'),
      '$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$c29tZWRpZ2VzdA',
    ]
    const garbage = ['', 'plain', ...others, ...tooCostly]
    let asked = 0
    for (const text of garbage)
      assert.equal(await passwords.verify('U*U', text, { onUnsupported: () => void asked++ }), false, text)
    assert.equal(asked, garbage.length)
    assert.equal(await passwords.verify('U*U', bcryptHash, { onUnsupported: () => assert.fail('it is a hash') }), true)
    assert.equal(logged.length, 1)
    assert.match(JSON.stringify(logged), /no password matches a stored hash/)
    // Its own errors are the caller's.
    const failing = passwords.verify('x', '', { onUnsupported: () => Promise.reject(new Error('of the caller')) })
    await assert.rejects(failing, /of the caller/)
  })

  test(`by ${name}: closing ends what waits, and what comes later`, async (t) => {
    const passwords = (await start(t))()
    const calls = Array.from({ length: 20 }, () => passwords.hash('x', { algorithm: 'bcrypt', cost: 12 }))
    const ends = Promise.allSettled(calls)
    await calls[0]
    await passwords.close()
    const codes = new Set((await ends).map((end) => (end.status === 'rejected' ? end.reason.code : 'hashed')))
    assert.deepEqual(codes, new Set(['hashed', 'closed']))
    await rejectsWith('closed', passwords.hash('x'))
    await rejectsWith('closed', passwords.verify('x', null))
    assert.deepEqual(await besides(), [])
  })
}

test('needsRehash goes by algorithm and cost, and hashes nothing', (t) => {
  const passwords = opener(t, { inProcess: true })()
  assert.equal(passwords.needsRehash(bcryptHash), true)
  assert.equal(passwords.needsRehash(bcryptHash, { algorithm: 'bcrypt', cost: 5 }), false)
  assert.equal(passwords.needsRehash(bcryptHash, { algorithm: 'bcrypt', cost: 6 }), true)
  assert.equal(passwords.needsRehash('no hash'), true)
})

test('jobs of an application are counted by the worker as any are', async (t) => {
  const { space, worker } = await workerFor(t)
  const passwords = passwordsOf(space)
  await passwords.verify('U*U', bcryptHash, { onRehash: () => undefined })
  await passwords.verify('U*U', bcryptHash)
  await passwords.hash('x')
  await jobsAreCounted(worker, 'hash hashed 1', 'verify hashed 2')
  const metrics = await (await fetch(`${worker.opsUrl}/metrics`)).text()
  assert.match(metrics, /^spillway_rehashes_total\{from="bcrypt"\} 1$/m)
})
