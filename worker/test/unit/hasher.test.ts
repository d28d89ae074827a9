import assert from 'node:assert/strict'
import { argon2Setting } from '@spillway/queue/wire/setting'
import { unpadded } from '@spillway/queue/wire/stored-hash'
import { test } from 'vitest'
import { Hasher } from '../../src/hashing/index.ts'
import { Methods } from '../../src/hashing/methods/list.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { Threads } from '../../src/hashing/threads.ts'

const policy = { memoryKib: 8_192, time: 2, parallelism: 1 }

const LONG = 'x'.repeat(1_024)

/** The algorithms, and how many calls were given to a thread. */
async function counted() {
  let calls = 0
  class CountedThreads extends Threads {
    override run<T>(call: () => Promise<T>): Promise<T> {
      calls += 1
      return super.run(call)
    }
  }
  const methods = await Methods.load(new CountedThreads(1), { native: undefined, memoryLimitKib: 65_536 })
  return {
    ...{ argon2: methods.argon2, bcrypt: methods.bcrypt },
    async callsOf(work: () => Promise<unknown>): Promise<number> {
      const before = calls
      await work()
      return calls - before
    },
  }
}

test('a dummy hash has the cost, and the lengths of the salt and the digest, of a hash by the policy, at random', async () => {
  const { argon2, bcrypt } = await counted()
  const shape = (hash: string) =>
    hash.replace(/[^$]+$/, (digest) => `${digest.length}`).replace(/\$[^$]{22}\$/, '$salt$')
  const asText = ({ stored }: ReturnType<typeof argon2.dummy>) => `${argon2Setting(stored)}$${unpadded(stored.digest)}`
  for (const cost of [policy, { ...policy, time: 8 }, { ...policy, memoryKib: 1_024 }]) {
    assert.equal(shape(asText(argon2.dummy(cost))), shape(await argon2.hash('x', cost)))
    assert.notEqual(asText(argon2.dummy(cost)), asText(argon2.dummy(cost)))
  }
  for (const cost of [4, 6]) {
    const { salt, digest, variant, ...dummy } = bcrypt.dummy(cost)
    assert.deepEqual([dummy.cost, variant, salt.length, digest.length], [cost, '2b', 22, 31])
    assert.notEqual(bcrypt.dummy(cost).digest, digest)
  }
})

test('a dummy hash is hashed as a stored hash is, whatever the password, also one that bcrypt would not read whole', async () => {
  const { argon2, bcrypt, callsOf } = await counted()
  for (const password of ['wrong', 'correct horse', LONG, 'wrong\0']) {
    assert.equal(await callsOf(() => argon2.verify(password, argon2.dummy(policy))), 1)
    assert.equal(await callsOf(() => bcrypt.verify(password, bcrypt.dummy(4))), 1)
  }
  const hasher = await Hasher.load(argon2idPolicy(policy), {})
  const before = hasher.times().wallMs
  await hasher.dummy('wrong')
  assert.ok(hasher.times().wallMs > before)
})

test('hashing leaves the event loop free', async () => {
  const hasher = await Hasher.load(argon2idPolicy({ ...policy, time: 8 }), {})
  const storedHash = await hasher.hash('correct horse')
  const work: [what: string, start: () => Promise<unknown>][] = [
    ['hash', () => hasher.hash('x')],
    ['verify', () => hasher.verify('x', storedHash)],
    ['dummy', () => hasher.dummy('x')],
    ['bcrypt', () => hasher.verify('x', '$2b$08$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW')],
  ]
  for (const [what, start] of work) {
    let hadTurn = false
    setImmediate(() => {
      hadTurn = true
    })
    await start()
    assert.ok(hadTurn, `the event loop had no turn before the end of ${what}`)
  }
})
