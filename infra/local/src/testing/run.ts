// The command `pnpm test`: the tests of every package on services of this run's own, ending with one line that counts them.
// Arguments pick the test files whose path contains one of them.
import { join } from 'node:path'
import { onLauncherGone } from '../processes/ancestors.ts'
import { type Keeper, openKeeper, stopOrder } from '../processes/keeper.ts'
import { repositoryDir } from '../processes/repository.ts'
import { report, UserError } from '../processes/user-error.ts'
import { turbo, turboEnv } from '../start/build.ts'
import { readEnvironment } from '../start/environment.ts'
import { checkPlatform } from '../start/platform.ts'
import { toVariables } from './environment.ts'
import { isGreen, resultsVariable, summary, sumResults, type TestResults } from './results.ts'
import { startTestServices } from './services.ts'

const stopped = 'Stopped before the end.'

async function test(filters: string[], keeper: Keeper): Promise<TestResults> {
  const services = await startTestServices(keeper, readEnvironment(process.env))
  try {
    const resultsDir = join(services.dir, 'results')
    const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}
    const child = keeper.spawn({
      command: turbo,
      // One package after the other, each using all processors: their reports stay in one piece and appear at once.
      args: [
        ...['run', 'test', '--only', '--continue', '--concurrency=1', '--ui=stream'],
        ...['--log-order=stream', '--log-prefix=none', '--output-logs=full', '--', ...filters],
      ],
      stopOrder: stopOrder.tool,
      cwd: repositoryDir,
      env: { ...process.env, ...turboEnv, ...color, ...toVariables(services), ...resultsVariable(resultsDir) },
      logFd: process.stdout.fd,
    })
    child.stdin?.end()
    const code = await new Promise((resolve) => child.on('exit', resolve).on('error', resolve))
    const results = sumResults(resultsDir)
    if (code === 0 || results.failed > 0) return results
    console.error('A package ended before it could run its tests.')
    return { ...results, failed: 1 }
  } finally {
    await services.close()
  }
}

async function main(): Promise<void> {
  checkPlatform()
  const filters = process.argv.slice(2).filter((argument) => argument !== '--')
  const unknown = filters.find((argument) => argument.startsWith('-'))
  if (unknown !== undefined) {
    throw new UserError(`"${unknown}" is no option: pnpm test takes parts of the names of test files, or nothing.`)
  }
  const keeper = openKeeper()
  // Closing the keeper ends all processes, and with them all that is awaited; the `finally` blocks clean up.
  const stop = (): void => {
    keeper.close().catch(report)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
  onLauncherGone(stop)
  try {
    const results = await test(filters, keeper)
    if (keeper.closing) throw new UserError(stopped)
    if (filters.length > 0 && results.passed + results.failed + results.skipped === 0) {
      console.error(`\nNo test file's path contains ${filters.map((filter) => `"${filter}"`).join(' or ')}.`)
    }
    console.log(`\n${summary(results)}`)
    process.exitCode = isGreen(results) ? 0 : 1
  } catch (error) {
    throw keeper.closing ? new UserError(stopped) : error
  } finally {
    await keeper.close()
  }
}

await main().catch((error) => {
  report(error)
  process.exitCode = 1
})
