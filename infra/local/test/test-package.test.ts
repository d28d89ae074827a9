import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { repositoryDir } from '../src/processes/repository.ts'
import { testEnvironment, toVariables } from '../src/testing/environment.ts'
import { startProcess } from '../src/testing/process.ts'
import { isGreen, resultsVariable, type TestResults } from '../src/testing/results.ts'
import { scratchDir } from './scratch.ts'

const imports = "import { describe, test } from 'node:test'\nimport assert from 'node:assert'\n"

/** Runs a package of these test files as `pnpm test` would, and gives its exit code and what it noted. */
async function runPackage(t: TestContext, files: Record<string, string>, filters: string[] = []) {
  const dir = await scratchDir(t)
  await mkdir(join(dir, 'test'))
  await writeFile(join(dir, 'package.json'), '{ "name": "@spillway/tried", "type": "module" }')
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, 'test', name), imports + text)
  const run = startProcess({
    entry: join(repositoryDir, 'infra/local/src/testing/package.ts'),
    args: filters,
    nodeArgs: ['--import', import.meta.resolve('tsx')],
    cwd: dir,
    env: { ...toVariables(testEnvironment()), ...resultsVariable(join(dir, 'results')) },
  })
  t.after(() => run.close())
  const { code } = await run.exited
  const noted = await readFile(join(dir, 'results', '@spillway+tried.json'), 'utf8').catch(() => '{}')
  return { code, output: run.output(), results: JSON.parse(noted) }
}

test('counts tests as they ended: passed, failed, skipped, in suites and in crashed files', async (t) => {
  const { code, results, output } = await runPackage(t, {
    'mixed.test.ts': `
      test('good', () => {})
      test('left out', { skip: 'why not' }, () => {})
      test('to do', { todo: true }, () => { throw new Error('not yet') })
      describe('suite', () => { test('good', () => {}); test('bad', () => assert.equal(1, 2)) })
      test('slow', { timeout: 50 }, () => new Promise((resolve) => setTimeout(resolve, 500)))
      test('whole', async (t) => { await t.test('part', () => {}) })`,
    'crash.test.ts': "throw new Error('at the top')",
    'none.test.ts': '',
  })
  assert.deepEqual(results, { passed: 4, failed: 3, skipped: 2 }, output)
  assert.equal(code, 1)
})

test('a green package is green, and filters pick files', async (t) => {
  const files = { 'login.test.ts': "test('good', () => {})", 'other.test.ts': "test('bad', () => assert.fail())" }
  const { code, results } = await runPackage(t, files, ['login'])
  assert.deepEqual({ code, results }, { code: 0, results: { passed: 1, failed: 0, skipped: 0 } })
  assert.deepEqual(await runPackage(t, files, ['nothing']).then(({ code, results }) => ({ code, results })), {
    code: 0,
    results: {},
  })
})

test('those that must be alone run after all others', async (t) => {
  // Fails for as long as the other one has not written its file, and would be the first by name.
  const { results, output } = await runPackage(t, {
    'a.alone.test.ts': `
      import { existsSync } from 'node:fs'
      test('the other one is over', () => assert.ok(existsSync(import.meta.dirname + '/over')))`,
    'b.test.ts': `
      import { writeFileSync } from 'node:fs'
      import { setTimeout as sleep } from 'node:timers/promises'
      test('takes a while', async () => { await sleep(1_000); writeFileSync(import.meta.dirname + '/over', '') })`,
  })
  assert.deepEqual(results, { passed: 2, failed: 0, skipped: 0 }, output)
})

test('a run in which nothing ran is not green', () => {
  const results = (passed: number, failed: number): TestResults => ({ passed, failed, skipped: 0 })
  assert.deepEqual([results(1, 0), results(0, 0), results(5, 1)].map(isGreen), [true, false, false])
})
