// The builder of plain folders follows the Dockerfile itself, and refuses an instruction that it cannot follow.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { readRecipe } from '../../src/follow.ts'
import { isInContext } from '../../src/images.ts'

test('every step of the Dockerfile is one that the builder follows', () => {
  const stages = readRecipe()
  assert.deepEqual(
    stages.map(({ name }) => name),
    ['build', 'engine', 'runtime', 'worker', 'gateway'],
  )
})

test('a step that the builder does not know is refused, and so is one that an engine would do otherwise', () => {
  assert.throws(() => readRecipe('FROM a AS b\nADD x y'), /does not know ADD/)
  assert.throws(() => readRecipe('FROM a AS b\nCMD node main.js'), /list of words/)
  assert.throws(() => readRecipe('FROM a AS b\nENV NAME value'), /NAME=value/)
  assert.throws(() => readRecipe('RUN true'), /start with FROM/)
})

test('steps use paths relative to their folder, so that they do the same in any', () => {
  const commands = readRecipe().flatMap(({ steps }) =>
    steps.flatMap((step) => (step.kind === 'run' ? [step.command] : [])),
  )
  assert.ok(commands.length > 3)
  for (const command of commands) assert.doesNotMatch(command.replace('/bin/true', ''), /(^|[\s=])\//)
})

test('images run as a user other than root, and are built on a base of an exact version', () => {
  const stages = readRecipe()
  for (const { base } of stages.filter(({ name }) => ['build', 'engine', 'runtime'].includes(name)))
    assert.match(base, /^[a-z]+:\d+\.\d+\.\d+-[a-z-]+$/)
  const runtime = stages.find(({ name }) => name === 'runtime')
  assert.ok(runtime?.steps.some((step) => step.kind === 'user' && step.uid > 0))
  for (const name of ['gateway', 'worker']) {
    const stage = stages.find((one) => one.name === name)
    assert.equal(stage?.base, 'runtime')
    assert.ok(!stage?.steps.some(({ kind }) => kind === 'user' || kind === 'run'))
  }
})

test('nothing that was built or installed outside gets into an image', () => {
  const context = (path: string): boolean => isInContext(new URL(`../../../../${path}`, import.meta.url).pathname)
  for (const path of [
    'node_modules',
    'api/node_modules/x',
    'worker/dist/main.cjs',
    'worker/test/a.test.ts',
    '.git/HEAD',
    'worker/engine/target/release/build',
    'worker/engine/spillway.node',
  ])
    assert.equal(context(path), false, path)
  for (const path of ['api/src/main.ts', 'prisma/migrations', 'pnpm-lock.yaml']) assert.equal(context(path), true, path)
})
