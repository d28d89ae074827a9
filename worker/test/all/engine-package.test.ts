// The packages of the native engine (infra/release): how the worker finds its platform's.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type TestContext, test } from 'vitest'
import { ENGINE_PACKAGES } from '../../src/hashing/native.ts'

const compiled = fileURLToPath(new URL('../../dist/hashing/native.js', import.meta.url))

/** Where a program finds the engine that is installed with these files, or how it can have one */
async function foundWith(
  t: TestContext,
  files: string[],
  what: 'ADDON_FILE' | 'HOW_TO_HAVE' = 'ADDON_FILE',
): Promise<string> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'spillway-engine-')))
  t.onTestFinished(() => rm(dir, { recursive: true }))
  await writeFile(join(dir, 'package.json'), '{ "type": "module" }')
  await copyFile(compiled, join(dir, 'native.js'))
  for (const file of files) {
    await mkdir(join(dir, file, '..'), { recursive: true })
    const manifest = JSON.stringify({ name: 'engine', version: '1.0.0', main: 'spillway.node' })
    await writeFile(join(dir, file), file.endsWith('package.json') ? manifest : '')
  }
  const script = `import { ${what} } from './native.js'; console.log(${what})`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { cwd: dir })
  return stdout.trim().replace(`${dir}/`, '')
}

const installed = (name: string) => [`node_modules/${name}/package.json`, `node_modules/${name}/spillway.node`]

test('there is a package for this platform, named as napi-rs names them', () => {
  for (const name of ENGINE_PACKAGES) {
    assert.match(name, new RegExp(`^@spillway/engine-${process.platform}-${process.arch}(-gnu|-musl)?$`))
  }
})

for (const name of ENGINE_PACKAGES) {
  test(`${name} is used where it is installed`, async (t) => {
    assert.equal(await foundWith(t, installed(name)), `node_modules/${name}/spillway.node`)
  })
}

test('without one the engine that is built beside is used', async (t) => {
  assert.match(await foundWith(t, []), /engine\/spillway\.node$/)
})

test('what is installed without an engine names the package that has it, and not a build of sources that are not there', async (t) => {
  const said = await foundWith(t, [], 'HOW_TO_HAVE')
  assert.ok(said.startsWith(ENGINE_PACKAGES[0] ?? ''), said)
  assert.doesNotMatch(said, /cargo/)
})

test('the package of another platform is not used', async (t) => {
  const other = '@spillway/engine-plan9-mips'
  assert.match(await foundWith(t, installed(other)), /engine\/spillway\.node$/)
})
