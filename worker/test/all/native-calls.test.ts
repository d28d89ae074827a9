// The native engine's calls: too late, taken back, and addons that are not this engine.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProcess } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'
import { argon2Setting, newArgon2Setting } from '@spillway/queue/wire/setting'
import { test } from 'vitest'
import { Hasher } from '../../src/hashing/index.ts'
import { ADDON_FILE, loadAddon, NoEngineError, ownVersion } from '../../src/hashing/native.ts'
import { performHash, performVerify } from '../../src/hashing/perform.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'

const skip = existsSync(ADDON_FILE) ? false : 'worker/engine has not been built here: that takes cargo'

const cost = { memoryKib: 64, time: 1, parallelism: 1 }
const right = '$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
/** A second of work: what is submitted after it waits. */
const long = right.replace('$05$', '$14$')

test.skipIf(skip)('a call after the engine was closed is rejected, and keeps no process alive', async (t) => {
  const native = new URL('../../src/hashing/native.ts', import.meta.url).href
  const program = `
    import { NativeEngine } from ${JSON.stringify(native)}
    const engine = await NativeEngine.start(1)
    engine.close()
    await engine.verify('U*U', '${right}').catch((error) => console.log(error.message))
  `
  const child = startProcess({ entry: '--', nodeArgs: ['--import', 'tsx', '--input-type=module', '--eval', program] })
  t.onTestFinished(() => child.close())
  await until(() => child.output().includes('the engine was closed'), { what: 'a call that is rejected' })
  assert.deepEqual(await child.exited, { code: 0, signal: null })
})

test.skipIf(skip)(
  'a request that is taken back before a thread has begun with it is not hashed, whatever it asks for',
  async () => {
    const hasher = await Hasher.load(argon2idPolicy(cost), { native: true })
    const storedHash = await hasher.hash('right')
    const running = hasher.verify('wrong', long)
    await until(() => hasher.native?.running === 1, { what: 'a thread that is busy' })
    const aborter = new AbortController()
    const options = { hasher, refused: assert.fail, signal: aborter.signal }
    const requests = [
      performVerify({ password: 'right', storedHash }, options),
      performVerify({ password: 'right', storedHash: null }, options),
      performHash({ password: 'right' }, options),
      performHash({ password: '', exact: { setting: argon2Setting(newArgon2Setting(cost)), password: '' } }, options),
    ]
    await until(() => hasher.native?.waiting === requests.length, { what: 'requests that wait' })
    aborter.abort(new Error('nobody waits for it'))
    for (const request of requests) await assert.rejects(request, /nobody waits for it/)
    assert.equal(hasher.native?.waiting, 0)
    assert.equal(await running, false)
  },
)

test.skipIf(skip)('an addon that is damaged or of another version is not used, and the reason is told', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'spillway-addon-'))
  t.onTestFinished(() => rm(dir, { recursive: true }))
  const [damaged, other] = [join(dir, 'damaged.node'), join(dir, 'other.node')]
  await writeFile(damaged, 'no library')
  // The same library, of a version that is as long.
  const version = ownVersion()
  const library = await readFile(ADDON_FILE)
  const renamed = version.replace(/\d/g, '9')
  for (let at = library.indexOf(version); at >= 0; at = library.indexOf(version, at + 1)) library.write(renamed, at)
  await writeFile(other, library)
  assert.throws(() => loadAddon([damaged]), /damaged\.node does not load: .+/)
  assert.throws(() => loadAddon([other]), new RegExp(`other\\.node is of version ${renamed}, not ${version}`))
  assert.throws(() => loadAddon([damaged, other]), /damaged\.node does not load.*; .*other\.node is of version/s)
  assert.throws(() => loadAddon([]), NoEngineError)
  const copy = join(dir, 'copy.node')
  await copyFile(ADDON_FILE, copy)
  assert.equal(loadAddon([damaged, other, copy]).VERSION, version)
})
