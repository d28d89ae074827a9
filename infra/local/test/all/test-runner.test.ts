// `pnpm test` as a command: what it runs and what it counts.
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'vitest'
import { startProcess } from '../../src/processes/node-process.ts'
import { isRunning } from '../../src/processes/process-table.ts'
import { defaultStateDir } from '../../src/processes/repository.ts'
import { until } from '../../src/processes/until.ts'

const imports = "import assert from 'node:assert'\nimport { afterAll, describe, test } from 'vitest'\n"

/** Starts a run of these files, in a folder from which they find Vitest. */
async function startRun(t: TestContext, files: Record<string, string>, filters: string[] = []) {
  const dir = await mkdtemp(join(defaultStateDir, 'runner-'))
  t.onTestFinished(() => rm(dir, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) {
    const file = join(dir, name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, imports + text)
  }
  const entry = 'infra/local/test/run-below.ts'
  const run = startProcess({ entry, args: [dir, ...filters], nodeArgs: ['--import', 'tsx'] })
  t.onTestFinished(() => run.close())
  return { dir, run }
}

/** The exit code, and the one line that counts. Standard error may be read after it. */
async function ended(t: TestContext, files: Record<string, string>, filters?: string[]) {
  const { run } = await startRun(t, files, filters)
  const { code } = await run.exited
  const output = run.output()
  const counts = output.split('\n').filter((line) => /^\d+ passed, /.test(line))
  return { code, line: counts.join('\n'), output }
}

const good = "test('good', () => {})"
const bad = "test('bad', () => assert.fail())"

test.concurrent('tests count as they ended; so do files that cannot be loaded, hooks, and rejections that nobody handles', async (t) => {
  const { code, line, output } = await ended(t, {
    'api/test/unit/mixed.test.ts': `
      ${good}
      test.skipIf(true)('left out', () => {})
      test.todo('to do')
      describe('suite', () => { ${good}; ${bad} })
      test('slow', { timeout: 50 }, () => new Promise((resolve) => setTimeout(resolve, 500)))`,
    'api/test/unit/crash.test.ts': "throw new Error('at the top')",
    'api/test/unit/hook.test.ts': `${good}; afterAll(() => { throw new Error('at the end') })`,
    'api/test/unit/rejection.test.ts': `test('good', () => void Promise.reject(new Error('nobody handles it')))`,
  })
  assert.equal(line, '4 passed, 5 failed, 2 skipped', output)
  assert.equal(code, 1)
})

test.concurrent('the level `all` runs when it is asked for, by name; other folders are no tests', async (t) => {
  const files = {
    'api/test/unit/login.test.ts': good,
    'worker/test/service/jobs.test.ts': good,
    'infra/local/test/process/start.test.ts': good,
    'api/test/all/package.test.ts': good,
    'api/test/account.test.ts': bad,
    'api/node_modules/x/test/unit/a.test.ts': bad,
    'worker/dist/test/unit/b.test.ts': bad,
    '.git/test/unit/c.test.ts': bad,
  }
  const lines = await Promise.all(
    [[], ['login', 'jobs'], ['package'], ['nothing']].map((filters) => ended(t, files, filters)),
  )
  assert.deepEqual(
    lines.map(({ code, line }) => [code, line]),
    [
      [0, '3 passed, 0 failed'],
      [0, '2 passed, 0 failed'],
      [0, '1 passed, 0 failed'],
      [1, '0 passed, 0 failed'],
    ],
  )
})

test.concurrent('a run that is stopped ends the files that run, and is not green', async (t) => {
  const { dir, run } = await startRun(t, {
    'api/test/process/endless.test.ts': `
      import { writeFileSync } from 'node:fs'
      test('endless', () => new Promise(() => {
        writeFileSync(${JSON.stringify('PID')}, String(process.pid))
        setInterval(() => {}, 1_000)
      }))`.replace('"PID"', "import.meta.dirname + '/pid'"),
  })
  const pid = await until(() => readFile(join(dir, 'api/test/process/pid'), 'utf8').then(Number, () => undefined))
  assert.notEqual((await run.stop('SIGTERM')).code, 0)
  await until(() => !isRunning(pid), { what: 'the end of the test file' })
})

test.concurrent('an option that is none is told in one sentence, and --help tells what it takes', async (t) => {
  const run = async (argument: string) => {
    const nodeArgs = ['--import', 'tsx']
    const command = startProcess({ entry: 'infra/local/src/rig/run.ts', args: [argument], nodeArgs })
    t.onTestFinished(() => command.close())
    return { ...(await command.exited), output: command.output() }
  }
  const [wrong, help] = await Promise.all(['--grep', '--help'].map(run))
  assert.deepEqual(wrong, { code: 1, signal: null, output: `Unknown option '--grep': see "pnpm test --help".` })
  assert.equal(help?.code, 0)
  assert.match(help?.output ?? '', /^pnpm test \[--all\] \[part of a path/)
})
