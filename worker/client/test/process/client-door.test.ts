// The client loads no hashing code.
import assert from 'node:assert/strict'
import { startProcess } from '@spillway/infra/processes/node-process'
import { type TestContext, test } from 'vitest'

/** Tells of each ES module that is loaded. It runs in a thread of its own, and a line is out before its module is run. */
const hooks = `
  import { writeSync } from 'node:fs'
  export async function load(url, context, next) {
    writeSync(1, JSON.stringify({ msg: 'module', url }) + '\\n')
    return await next(url, context)
  }`

/** Imports the module that is named on the command line; then tells of CommonJS modules and shared objects as well. */
const script = `
  require('node:module').register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hooks)}))
  const entry = require('node:url').pathToFileURL(process.argv[1])
  import(entry).then(async ({ Hasher }) => {
    if (Hasher) {
      const { argon2idPolicy } = await import(new URL('policy.js', entry))
      await Hasher.load(argon2idPolicy({ memoryKib: 64, time: 1, parallelism: 1 }), {})
    }
    const files = [...Object.keys(require.cache), ...process.report.getReport().sharedObjects]
    console.log(JSON.stringify({ msg: 'files', files }))
  })`

/** Everything that a fresh process has loaded after it imported this module. */
async function loadedBy(t: TestContext, entry: string): Promise<string[]> {
  const importing = startProcess({ entry, nodeArgs: ['-e', script] })
  t.onTestFinished(() => importing.close())
  const { files } = await importing.waitForLog(({ msg }) => msg === 'files')
  assert.ok(Array.isArray(files))
  const modules = importing.logs.flatMap(({ url }) => (typeof url === 'string' ? [url] : []))
  return [...modules, ...files.map(String)]
}

const isHashing = (file: string) => /argon2|bcrypt|\/worker\/dist\/hashing\//i.test(file)

test('importing the client loads no hashing code, no shared object, and no code of the queue', async (t) => {
  const loaded = await loadedBy(t, 'worker/client/dist/index.js')
  assert.ok(loaded.some((file) => file.endsWith('/worker/queue/dist/wire/seal.js')))
  const foreign = loaded.filter((file) => isHashing(file) || /\/(bullmq|ioredis)\//.test(file))
  assert.deepEqual(foreign, [])
})

test('the code of the queue loads no hashing code', async (t) => {
  const loaded = await loadedBy(t, 'worker/queue/dist/client.js')
  assert.ok(loaded.some((file) => file.includes('/bullmq/')))
  assert.deepEqual(loaded.filter(isHashing), [])
})

test('importing a replacement of bcrypt loads neither, until its first call', async (t) => {
  for (const door of ['bcrypt', 'argon2']) {
    const loaded = await loadedBy(t, `worker/client/dist/${door}.js`)
    assert.ok(loaded.some((file) => file.endsWith(`/worker/client/dist/${door}.js`)))
    const foreign = loaded.filter((file) => /\/(bullmq|ioredis|ajv)\/|create-passwords|\.node$/.test(file))
    assert.deepEqual(foreign, [])
  }
})

test('hashing code would have been seen', async (t) => {
  const loaded = (await loadedBy(t, 'worker/dist/hashing/index.js')).filter(isHashing)
  assert.ok(
    loaded.some((file) => /argon2.*\.node$/.test(file)),
    'the shared object of argon2',
  )
  assert.ok(
    loaded.some((file) => /bcrypt.*\.node$/.test(file)),
    'the shared object of bcrypt',
  )
  assert.ok(loaded.some((file) => file.endsWith('/worker/dist/hashing/index.js')))
})
