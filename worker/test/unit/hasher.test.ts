import assert from 'node:assert/strict'
import { test } from 'vitest'
import { createHasher, type Hasher, UnsupportedHashError } from '../../src/hashing/index.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'

const policy = { memoryKib: 8_192, time: 2, parallelism: 1 }

const ROUNDS = 15

/** Processor time of each call in milliseconds: medians of many rounds, so that what disturbs one call disturbs them all. */
async function processorMs(calls: (() => Promise<unknown>)[]): Promise<number[]> {
  const times = calls.map((): number[] => [])
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [n, call] of calls.entries()) {
      const before = process.cpuUsage()
      await call()
      const { user, system } = process.cpuUsage(before)
      times[n]?.push((user + system) / 1_000)
    }
  }
  return times.map(median)
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

test('the decoy takes the processor time of a verify, for any password', async () => {
  const hasher = await createHasher(argon2idPolicy(policy), { testHashes: false })
  const storedHash = await hasher.hash('correct horse')
  const decoys = ['wrong', 'correct horse', 'x'.repeat(1_024)].map((password) => () => hasher.decoy(password))
  const [verifyMs = Number.NaN, ...decoysMs] = await processorMs([() => hasher.verify('wrong', storedHash), ...decoys])
  for (const decoyMs of decoysMs) {
    assert.ok(decoyMs > verifyMs * 0.6 && decoyMs < verifyMs * 1.6, `decoy ${decoyMs} ms, verify ${verifyMs} ms`)
  }
})

test('the decoy follows the policy', async () => {
  const cheap = await createHasher(argon2idPolicy({ ...policy, memoryKib: 1_024 }), { testHashes: false })
  const dear = await createHasher(argon2idPolicy({ ...policy, time: 8 }), { testHashes: false })
  const calls = [cheap, dear].map((hasher) => () => hasher.decoy('wrong'))
  const [cheapMs = Number.NaN, dearMs = Number.NaN] = await processorMs(calls)
  assert.ok(dearMs > cheapMs * 4, `m=8192,t=8 took ${dearMs} ms, m=1024,t=2 took ${cheapMs} ms`)
})

test('a password that bcrypt would not read whole takes the processor time of any other', async () => {
  const hasher = await createHasher(argon2idPolicy(policy), { testHashes: false })
  const storedHash = '$2b$08$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
  const passwords = ['wrong', 'x'.repeat(1_024), 'wrong\0']
  const [anyMs = Number.NaN, ...refusedMs] = await processorMs(
    passwords.map((password) => () => hasher.verify(password, storedHash)),
  )
  for (const ms of refusedMs) assert.ok(ms > anyMs * 0.6, `refused after ${ms} ms, any other after ${anyMs} ms`)
})

test('the decoy tells nothing about the password', async () => {
  const hasher = await createHasher(argon2idPolicy(policy), { testHashes: false })
  for (const password of ['', 'x', 'correct horse', '\0']) assert.equal(await hasher.decoy(password), undefined)
})

test('hashing leaves the event loop free', async () => {
  const hasher = await createHasher(argon2idPolicy({ ...policy, time: 8 }), { testHashes: false })
  const storedHash = await hasher.hash('correct horse')
  const work: [what: string, start: () => Promise<unknown>][] = [
    ['hash', () => hasher.hash('x')],
    ['verify', () => hasher.verify('x', storedHash)],
    ['decoy', () => hasher.decoy('x')],
    ['bcrypt', () => hasher.verify('x', '$2b$08$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW')],
  ]
  for (const [what, start] of work) {
    const utilizations: number[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = performance.eventLoopUtilization()
      await start()
      utilizations.push(performance.eventLoopUtilization(before).utilization)
    }
    // Of the time from the call to its end, by shares and not by speed: next to nothing, or nearly all where the loop hashes.
    const busy = median(utilizations)
    assert.ok(busy < 0.5, `the event loop was busy for ${Math.round(busy * 100)} % of ${what}`)
  }
})

async function isAccepted(hasher: Hasher, storedHash: string): Promise<boolean> {
  try {
    return await hasher.verify('right', storedHash)
  } catch (error) {
    assert.ok(error instanceof UnsupportedHashError)
    return false
  }
}

test('hashes that hash nothing are accepted only where that is asked for', async () => {
  const strict = await createHasher(argon2idPolicy(policy), { testHashes: false })
  const lenient = await createHasher(argon2idPolicy(policy), { testHashes: true })
  for (const storedHash of ['$spillway-token$', '$spillway-wait$1$']) {
    assert.equal(await isAccepted(strict, storedHash), false)
    assert.equal(await isAccepted(lenient, storedHash), true)
    assert.equal(await lenient.verify('wrong', storedHash), false)
    assert.equal(lenient.isDue(storedHash), false)
  }
  for (const storedHash of ['$spillway-token$x', '$spillway-wait$', '$spillway-wait$-1$', '$spillway-wait$100000$']) {
    assert.equal(await isAccepted(lenient, storedHash), false, storedHash)
  }
})

test('a waiting hash takes its time', async () => {
  const hasher = await createHasher(argon2idPolicy(policy), { testHashes: true })
  const startedAt = performance.now()
  await hasher.verify('right', '$spillway-wait$120$')
  assert.ok(performance.now() - startedAt >= 118)
})

test('new hashes are real ones, also where test hashes are accepted', async () => {
  const hasher = await createHasher(argon2idPolicy(policy), { testHashes: true })
  assert.match(await hasher.hash('x'), /^\$argon2id\$v=19\$m=8192,t=2,p=1\$/)
})
