// The native engine as JavaScript sees it. Skipped where it has not been built.
import assert from 'node:assert/strict'
import { pbkdf2Sync, scryptSync } from 'node:crypto'
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { startProcess } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'
import type { Argon2Cost } from '@spillway/queue/wire/policy'
import { argon2Setting, newArgon2Setting } from '@spillway/queue/wire/setting'
import { unpadded } from '@spillway/queue/wire/stored-hash'
import { test } from 'vitest'
import { measureCapacity } from '../../src/hashing/capacity-estimate.ts'
import { Hasher } from '../../src/hashing/index.ts'
import { UnsupportedHashError } from '../../src/hashing/methods/recipe.ts'
import { ADDON_FILE, NATIVE_NAME, NativeEngine } from '../../src/hashing/native.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { extendedBytes, vectorPassword, vectors } from '../format-vectors.ts'

const skip = existsSync(ADDON_FILE) ? false : 'worker/engine has not been built here: that takes cargo'

const policy = { memoryKib: 64, time: 1, parallelism: 1 }
const right = '$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
/** A second of work: what is submitted after it waits. */
const long = '$2b$14$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'

function newSetting(cost: Argon2Cost): string {
  return argon2Setting(newArgon2Setting(cost))
}

/** An engine of one thread that has begun with something long, until the process ends */
async function busyEngine(): Promise<NativeEngine> {
  const engine = await NativeEngine.start(1)
  engine.verify('U*U', long).catch(() => {})
  await until(() => engine.running === 1, { what: 'a thread that is busy' })
  return engine
}

test.skipIf(skip)('what is hashed to measure a worker says nothing of the batches to come', async () => {
  const hasher = await Hasher.load(argon2idPolicy(policy), { native: true })
  await measureCapacity(hasher, 1)
  assert.equal(hasher.batchWidth(), 1)
})

test.skipIf(skip)('an engine that is built is the first of a hasher, and named in what a worker says', async () => {
  const hasher = await Hasher.load(argon2idPolicy(policy), { native: true, slots: 2 })
  const { argon2, bcrypt, digest } = hasher.engines
  assert.deepEqual([argon2, bcrypt, digest], [NATIVE_NAME, NATIVE_NAME, 'node:crypto'])
  assert.match(hasher.description, /worker\/engine, bcrypt \d+ at a time \(\w+\), argon2 [1-4] at a time \([\w, ]+\)/)
  if (process.arch === 'x64') {
    assert.deepEqual([hasher.engines.pbkdf2, hasher.engines.scrypt], [NATIVE_NAME, NATIVE_NAME])
    assert.match(hasher.description, /pbkdf2 \d+ at a time \(.+\), scrypt [1-4] at a time \(.+\)/)
  }
  assert.deepEqual(hasher.native?.wrong, [])
  const stored = await hasher.hash('correct horse')
  assert.match(stored, /^\$argon2id\$v=19\$m=64,t=1,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  assert.equal(await hasher.verify('correct horse', stored), true)
  assert.equal(await hasher.verify('correct hors', stored), false)
  assert.equal(await hasher.verify('U*U', right), true)
  assert.equal(await hasher.verify('U*U', right.replace('2b', '2y')), true)
  for (const [password, storedHash, matches] of extendedBytes)
    assert.equal(await hasher.verify(password, storedHash), matches, `${JSON.stringify(password)} ${storedHash}`)
  await assert.rejects(hasher.verify('U*U', right.replace('05', '18')), UnsupportedHashError)
})

test.skipIf(skip || (process.arch === 'x64' ? false : 'there is code for x86-64 alone'))(
  'PBKDF2 with SHA-256 and scrypt of other systems are verified by the engine, PBKDF2 with other digests by node:crypto',
  async () => {
    const hasher = await Hasher.load(argon2idPolicy(policy), { native: true, slots: 1 })
    const derived = vectors.filter(({ label }) => label === 'pbkdf2' || label === 'scrypt')
    for (const { origin, storedHash } of derived) {
      // Firebase's needs the key itself.
      if (origin === 'Firebase') continue
      const before = hasher.native?.times().wallMs
      assert.equal(await hasher.verify(vectorPassword, storedHash), true, origin)
      assert.equal(await hasher.verify(`${vectorPassword}.`, storedHash), false, origin)
      const isOfNode = /pbkdf2.*sha(1|224|384|512)\b|^\$pbkdf2\$|^\$scram\$.*sha-(1|224|384|512)=|^AF/.test(storedHash)
      assert.equal(hasher.native?.times().wallMs === before, isOfNode, origin)
    }
    // A salt that the engine has no room for.
    const salt = Buffer.alloc(600, 'salt')
    const key = pbkdf2Sync('password', salt, 20, 32, 'sha256')
    const long = `$pbkdf2-sha256$i=20$${unpadded(salt)}$${unpadded(key)}`
    await assert.rejects(async () => hasher.native?.verify('password', long), /does not know this form/)
    assert.equal(await hasher.verify('password', long), true)
  },
)

test.skipIf(skip || (process.arch === 'x64' ? false : 'there is code for x86-64 alone'))(
  "OWASP's first choice of scrypt, beyond the share of a thread, is verified by the engine",
  async () => {
    const [salt, cost] = [Buffer.from('salt of a hash'), { N: 2 ** 17, r: 8, p: 1, maxmem: 2 ** 28 }]
    const key = scryptSync(vectorPassword, salt, 32, cost)
    const stored = `$scrypt$ln=17,r=8,p=1$${unpadded(salt)}$${unpadded(key)}`
    const memory = { slots: 2, slotKib: 43_691, mostKib: 131_073 }
    const hasher = await Hasher.load(argon2idPolicy(policy), { native: true, ...memory })
    const { wallMs } = hasher.native?.times() ?? assert.fail()
    assert.equal(await hasher.verify(vectorPassword, stored), true)
    assert.equal(await hasher.verify('another', stored), false)
    assert.notEqual(hasher.native?.times().wallMs, wallMs)
  },
)

test('where it is turned off the packages hash, and where there is no engine, what a worker says tells how to have it', async (t) => {
  for (const native of [false, true]) {
    const hasher = await Hasher.load(argon2idPolicy(policy), { native })
    t.onTestFinished(() => hasher.native?.close())
    if (native && skip === false) continue
    assert.equal(hasher.native, undefined)
    assert.ok(!Object.values(hasher.engines).includes(NATIVE_NAME))
    assert.match(
      hasher.description,
      native ? /one at a time; with cargo, pnpm start builds worker\/engine$/ : /one at a time$/,
    )
  }
})

test.skipIf(skip)('a hash of a form that only the packages know is verified by them', async () => {
  const hasher = await Hasher.load(argon2idPolicy(policy), { native: true, slots: 1 })
  // A salt whose last character has bits that mean nothing.
  const lenient = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/5'
  await assert.rejects(async () => hasher.native?.verify('password', lenient), /does not know this form/)
  await hasher.verify('password', lenient).catch((error: unknown) => assert.ok(error instanceof Error))
})

test.skipIf(skip)('bytes and text of the same bytes are the same password', async () => {
  const engine = await NativeEngine.start(1)
  const stored = await engine.hash('päss\0wörd', newSetting(policy))
  assert.equal(await engine.verify(Buffer.from('päss\0wörd'), stored), true)
  assert.equal(await engine.verify(new Uint8Array([1, ...Buffer.from('päss\0wörd')]).subarray(1), stored), true)
  assert.equal(await engine.verify(Buffer.from('päss\0wörd', 'latin1'), stored), false)
})

test.skipIf(skip)(
  'a call that began is done though its signal came, and one whose signal came before never begins',
  async () => {
    const engine = await NativeEngine.start(1)
    const aborter = new AbortController()
    const begun = engine.verify('U*U', right.replace('$05$', '$13$'), aborter.signal)
    await until(() => engine.running === 1, { what: 'a call that began' })
    aborter.abort(new Error('too late'))
    assert.equal(await begun, false)
    await assert.rejects(engine.verify('U*U', right, aborter.signal), /too late/)
    assert.equal(engine.waiting, 0)
  },
)

test.skipIf(skip)('a call that waits when the engine is closed is rejected', async () => {
  const engine = await busyEngine()
  const waiting = engine.verify('U*U', right)
  engine.close()
  await assert.rejects(waiting, /the engine was closed/)
})

const program = `
  import { NativeEngine } from ${JSON.stringify(new URL('../../src/hashing/native.ts', import.meta.url).href)}
  const engine = await NativeEngine.start(2)
`

test.skipIf(skip)('a process ends by itself when it has no more calls, and at once when it is told to', async (t) => {
  const run = (script: string) => {
    const nodeArgs = ['--import', 'tsx', '--input-type=module', '--eval', program + script]
    const child = startProcess({ entry: '--', nodeArgs })
    t.onTestFinished(() => child.close())
    return child
  }
  const idle = run(`console.log(await engine.verify('U*U', '${right}'))`)
  assert.deepEqual(await idle.exited, { code: 0, signal: null })
  assert.match(idle.output(), /true/)
  const busy = run(
    `engine.verify('U*U', '${long}'); engine.verify('U*U', '${long}'); setTimeout(() => process.exit(7), 50)`,
  )
  assert.deepEqual(await busy.exited, { code: 7, signal: null })
})

test.skipIf(skip)('a thread of JavaScript may end with calls in hand', async () => {
  const loader = JSON.stringify(ADDON_FILE)
  for (let round = 0; round < 5; round += 1) {
    const worker = new Worker(
      `const { Engine } = require(${loader}); const { parentPort } = require('node:worker_threads')
       const engine = new Engine(2, 1024, () => {}); for (let id = 0; id < 20; id++) engine.submit(id, 'U*U', '${right}')
       parentPort.postMessage('busy'); setInterval(() => {}, 1000)`,
      { eval: true },
    )
    await new Promise((resolve) => worker.once('message', resolve))
    assert.equal(await worker.terminate(), 1)
  }
  const engine = await NativeEngine.start(1)
  assert.equal(await engine.verify('U*U', right), true)
})
