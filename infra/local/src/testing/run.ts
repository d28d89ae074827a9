// The command `pnpm test`: the tests of every package on services of this run's own, ending with one line that counts them.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runWithKeeper } from '../processes/command.ts'
import { parseCommandLine } from '../processes/command-line.ts'
import { type Keeper, stopOrder } from '../processes/keeper.ts'
import { repositoryDir } from '../processes/repository.ts'
import { readEnvironment } from '../start/environment.ts'
import { checkPlatform } from '../start/platform.ts'
import { toVariables } from './environment.ts'
import { findTestFiles, keepDurations, longestFirst, readDurations } from './files.ts'
import { isGreen, nothing, summary, type TestResults } from './results.ts'
import { startTestServices } from './services.ts'

const help = `pnpm test [part of a path ...]

Runs the test files of all packages whose path contains one of these parts, or all of them, on a PostgreSQL and a Redis of their own.
`

const runner = fileURLToPath(new URL('runner.ts', import.meta.url))

async function test(filters: string[], keeper: Keeper): Promise<TestResults> {
  const files = longestFirst(findTestFiles(filters), readDurations())
  if (files.length === 0) {
    console.error(`No test file's path contains ${filters.map((filter) => `"${filter}"`).join(' or ')}.`)
    return nothing
  }
  const services = await startTestServices(keeper, readEnvironment(process.env))
  try {
    const resultsFile = join(services.dir, 'results.json')
    const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}
    const child = keeper.spawn({
      command: process.execPath,
      // As a URL, because the processes of test files take these options over.
      args: ['--import', import.meta.resolve('./preload.js'), runner, resultsFile, ...files],
      stopOrder: stopOrder.tool,
      cwd: repositoryDir,
      env: { ...process.env, ...color, ...toVariables(services) },
      logFd: process.stdout.fd,
    })
    child.stdin?.end()
    await new Promise((resolve) => child.on('exit', resolve).on('error', resolve))
    const results = readResults(resultsFile)
    if (!keeper.closing) keepDurations(results.durations)
    return results
  } finally {
    await services.close()
  }
}

function readResults(file: string): TestResults {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    console.error('The runner ended before all tests had run.')
    return { ...nothing, failed: 1 }
  }
}

await runWithKeeper(async (keeper) => {
  checkPlatform()
  const { values, positionals } = parseCommandLine('pnpm test', process.argv.slice(2), {}, { allowPositionals: true })
  if (values.help) return console.log(help)
  const results = await test(positionals, keeper)
  if (keeper.closing) return
  console.log(`\n${summary(results)}`)
  process.exitCode = isGreen(results) ? 0 : 1
})
