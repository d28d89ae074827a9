// What `pnpm mutants` is made of: a test that imports a file which is not copied would stop it before its first mistake.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { build } from 'esbuild'
import { bundling, isCopied, modules, repositoryDir, testFiles } from '../src/files.ts'

const { metafile } = await build({
  ...bundling,
  entryPoints: testFiles(),
  absWorkingDir: repositoryDir,
  metafile: true,
  write: false,
})
/** The files of the repository that the tests import, and they themselves, by their paths there. */
const imported = Object.keys(metafile.inputs)

test('everything that the tests import is copied', () => {
  assert.ok(imported.length > modules.length)
  assert.deepEqual(
    imported.filter((file) => !isCopied(file)),
    [],
  )
})

test('each module in which mistakes are made is there, and a test imports it', () => {
  assert.deepEqual(
    modules.filter((module) => !imported.includes(module)),
    [],
  )
})

test('of other packages of the repository the tests import none but the client, whose copy is bundled', () => {
  const outside = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path))
  assert.deepEqual(
    outside.filter((path) => path.startsWith('@spillway/')),
    [],
  )
})
