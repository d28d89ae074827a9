import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isRunning } from '../src/processes/process-table.ts'
import { repositoryDir } from '../src/processes/repository.ts'
import { until } from '../src/processes/until.ts'
import { findTestFiles, longestFirst } from '../src/testing/files.ts'
import { startProcess, type TestProcess } from '../src/testing/process.ts'
import { isGreen, summary } from '../src/testing/results.ts'
import { scratchDir } from '../src/testing/scratch-dir.ts'

const imports = "import { describe, test } from 'node:test'\nimport assert from 'node:assert'\n"

/** A folder of these test files, with what every one of them imports. */
async function folderOf(t: TestContext, files: Record<string, string>): Promise<string> {
  const dir = await scratchDir(t)
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(dir, name, '..'), { recursive: true })
    await writeFile(join(dir, name), imports + text)
  }
  return dir
}

function startRunner(dir: string, files: string[]): TestProcess {
  return startProcess({
    entry: join(repositoryDir, 'infra/local/src/testing/runner.ts'),
    args: [join(dir, 'results.json'), ...files],
    nodeArgs: ['--import', import.meta.resolve('../src/testing/preload.js')],
  })
}

/** Runs these test files as `pnpm test` would, and gives the runner's exit code and what it counted. */
async function runFiles(t: TestContext, files: Record<string, string>, filters: string[] = []) {
  const dir = await folderOf(t, files)
  const run = startRunner(dir, findTestFiles(filters, dir))
  t.after(() => run.close())
  const { code } = await run.exited
  const { durations, ...results } = JSON.parse(await readFile(join(dir, 'results.json'), 'utf8'))
  return { code, output: run.output(), results, durations }
}

test('counts tests as they ended: passed, failed, skipped, in suites and in crashed files', async (t) => {
  const { code, results, output } = await runFiles(t, {
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

test('no result is lost where the runner reads more slowly than its files report', async (t) => {
  // The suite reports all of its tests, 2 MB, at the end of the first one.
  const names = ['a', 'b', 'c'].map((name) => `${name}.test.ts`)
  const suite = `
    describe('suite', { concurrency: true }, () => {
      test('first', () => new Promise((resolve) => setTimeout(resolve, 300)))
      for (let number = 1; number < 100; number++) test(number + '-'.repeat(20_000), () => {})
    })`
  const { results } = await runFiles(t, Object.fromEntries(names.map((name) => [name, suite])))
  assert.deepEqual(results, { passed: 300, failed: 0, skipped: 0 })
})

test('green files are green, and filters pick files', async (t) => {
  const files = { 'login.test.ts': "test('good', () => {})", 'other.test.ts': "test('bad', () => assert.fail())" }
  const { code, results } = await runFiles(t, files, ['login'])
  assert.deepEqual({ code, results }, { code: 0, results: { passed: 1, failed: 0, skipped: 0 } })
})

test('files are found in all packages, by any part of their path', async (t) => {
  const names = ['api/test/login.test.ts', 'infra/local/test/start.test.ts', 'worker/test/jobs.test.ts']
  const others = ['api/test/account.ts', 'api/node_modules/x/test/a.test.ts', 'worker/dist/b.test.ts', '.git/c.test.ts']
  const dir = await folderOf(t, Object.fromEntries([...names, ...others].map((name) => [name, ''])))
  const found = (...filters: string[]) => findTestFiles(filters, dir).map((file) => file.slice(dir.length + 1))
  assert.deepEqual(found().sort(), names)
  assert.deepEqual(found('jobs', 'api/').sort(), [names[0], names[2]])
  assert.deepEqual(found('nothing'), [])
})

test('the longest files start first, and what never ran before all others', async (t) => {
  const dir = await folderOf(t, { 'a.test.ts': '', 'b.test.ts': '', 'large.test.ts': '// more', 'small.test.ts': '' })
  const [a = '', b = '', large = '', small = ''] = findTestFiles([], dir).sort()
  assert.deepEqual(longestFirst([a, small, b, large], { [a]: 1_000, [b]: 90_000 }), [large, small, b, a])
  const { durations } = await runFiles(t, { 'c.test.ts': "test('c', () => new Promise((r) => setTimeout(r, 300)))" })
  const [[file, ms] = []] = Object.entries<number>(durations)
  assert.ok(file?.endsWith('/c.test.ts') && ms !== undefined && ms >= 300, JSON.stringify(durations))
})

test('those that must be alone run after all others', async (t) => {
  // Fails for as long as the other one has not written its file, and would be the first by name.
  const { results, output } = await runFiles(t, {
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

test('a run that is stopped ends the files that run', async (t) => {
  const dir = await folderOf(t, {
    'endless.test.ts': `
      import { writeFileSync } from 'node:fs'
      test('endless', () => new Promise(() => {
        writeFileSync(import.meta.dirname + '/pid', String(process.pid))
        setInterval(() => {}, 1_000)
      }))`,
  })
  const run = startRunner(dir, findTestFiles([], dir))
  t.after(() => run.close())
  const pid = await until(async () => Number(await readFile(join(dir, 'pid'), 'utf8')))
  await run.stop('SIGTERM')
  await until(() => !isRunning(pid), { what: 'the end of the test file' })
})

test('a run in which nothing ran is not green', () => {
  const results = (passed: number, failed: number) => ({ passed, failed })
  assert.deepEqual([results(1, 0), results(0, 0), results(5, 1)].map(isGreen), [true, false, false])
})

test('the last line counts, and names skipped tests only if there are any', () => {
  assert.equal(summary({ passed: 5, failed: 0, skipped: 0 }), '5 passed, 0 failed')
  assert.equal(summary({ passed: 5, failed: 1, skipped: 2 }), '5 passed, 1 failed, 2 skipped')
})

test('an option that is none is told in one sentence, and --help tells what it takes', async (t) => {
  const run = async (argument: string) => {
    const command = startProcess({
      entry: 'infra/local/src/testing/run.ts',
      args: [argument],
      nodeArgs: ['--import', 'tsx'],
    })
    t.after(() => command.close())
    return { ...(await command.exited), output: command.output() }
  }
  const [wrong, help] = await Promise.all(['--grep', '--help'].map(run))
  assert.deepEqual(wrong, { code: 1, signal: null, output: `Unknown option '--grep': see "pnpm test --help".` })
  assert.equal(help?.code, 0)
  assert.match(help?.output ?? '', /^pnpm test \[part of a path/)
})
