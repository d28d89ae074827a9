// What a stored hash may cost with a password: the whole password in each round, and all attempts
// together.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { Bounds } from '../../src/hashing/bounds.ts'
import { createReader } from '../../src/hashing/formats/list.ts'
import { Hasher } from '../../src/hashing/index.ts'
import { Methods } from '../../src/hashing/methods/list.ts'
import { UnsupportedHashError } from '../../src/hashing/methods/recipe.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { Threads } from '../../src/hashing/threads.ts'

const policy = { memoryKib: 64, time: 1, parallelism: 1 }
const memoryLimitKib = 65_536
const hasher = await Hasher.load(argon2idPolicy(policy), { slotKib: memoryLimitKib })
const methods = await Methods.load(new Threads(1), { native: undefined, memoryLimitKib })
const own = { algorithm: 'argon2id', ...policy } as const
const bounds = await Bounds.measure(methods, { policy: own, memoryLimitKib, width: () => 1 })
const read = createReader({ firebase: undefined, peppers: [] })

/** Costs that are accepted however slow the worker is, whose rounds read the password. */
const dear = {
  'sha512-crypt': `$6$rounds=656000$saltsalt$${'.'.repeat(86)}`,
  'sha256-crypt': `$5$rounds=535000$saltsalt$${'.'.repeat(43)}`,
  phpass: `$P$GAAAAAAAA${'.'.repeat(22)}`,
  'phpass of Drupal': `$S$GAAAAAAAA${'.'.repeat(43)}`,
}
const texts = { usual: 'x'.repeat(64), long: 'x'.repeat(4_096) }

function recipeOf(storedHash: string) {
  const [recipe] = read(storedHash)?.recipes ?? []
  return recipe ?? assert.fail(storedHash)
}

/** How many of so many attempts with this password are accepted together. */
const acceptedOf = (storedHash: string, text: string, count: number) =>
  bounds.acceptedOf(Array.from({ length: count }, () => ({ text, recipe: recipeOf(storedHash) }))).length

test('a cost that is accepted with a usual password is counted with all bytes of a longer one', () => {
  for (const [name, storedHash] of Object.entries(dear)) {
    assert.equal(bounds.excessOf(recipeOf(storedHash)), undefined, name)
    assert.equal(acceptedOf(storedHash, texts.usual, 1), 1, name)
    // So many more are done in the same time with a usual password, whatever this machine does in
    // that.
    const tenth = storedHash.replace(/(rounds=)(\d+)0\$/, '$1$2$').replace(/^(\$[PS]\$)G/, '$1C')
    const [usual, long] = [acceptedOf(tenth, texts.usual, 500), acceptedOf(tenth, texts.long, 500)]
    assert.ok(long < usual && usual < 500, `${name}: ${long} of ${usual}`)
  }
})

test('a long password with dear rounds is refused before anything is hashed, and a short one is not', async () => {
  const before = hasher.times()
  await assert.rejects(hasher.verify('x'.repeat(3_072), dear['sha512-crypt']), UnsupportedHashError)
  assert.deepEqual(hasher.times(), before)
  assert.equal(await hasher.verify('x'.repeat(3_072), `$6$rounds=1000$saltsalt$${'.'.repeat(86)}`), false)
})

test('all forms of a password count together: a form beyond the bound is not tried, and nobody is told that it is wrong', async () => {
  const storedHash = `$pbkdf2-sha512$1000000$${'A'.repeat(22)}$${'A'.repeat(86)}`
  assert.equal(acceptedOf(storedHash, 'x', 1), 1)
  assert.ok(acceptedOf(storedHash, 'x', 100) < 100)
  await assert.rejects(hasher.verify(['x', 'x'.repeat(3_072)], dear['sha512-crypt']), UnsupportedHashError)
})

test('a hash of the policy is verified in all forms, whatever it takes', () => {
  const ofPolicy = `$argon2id$v=19$m=64,t=1,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`
  assert.equal(acceptedOf(ofPolicy, texts.long, 100), 100)
})
