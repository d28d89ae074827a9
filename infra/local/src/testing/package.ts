// Each package's script `test`: runs its test/**/*.test.ts. Arguments pick the files whose path contains one of them.
// Outside of `pnpm test` it starts the services itself.
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openKeeper } from '../processes/keeper.ts'
import { report } from '../processes/user-error.ts'
import { readEnvironment } from '../start/environment.ts'
import { findTestEnvironment, toVariables } from './environment.ts'
import { runTestFiles } from './files.ts'
import { isGreen, noteResults, summary, type TestResults } from './results.ts'
import { startTestServices } from './services.ts'

const aborter = new AbortController()

async function runPackage(filters: string[]): Promise<TestResults> {
  const { name } = JSON.parse(readFileSync('package.json', 'utf8'))
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
    .map((file) => resolve(join('test', file)))
    .sort()
  if (files.length === 0) return { passed: 0, failed: 0, skipped: 0 }
  noteResults(name, { passed: 0, failed: 1, skipped: 0 })
  const results = await runTestFiles(files, aborter.signal)
  noteResults(name, results)
  return results
}

/** Runs the package by itself, on services of its own. */
async function runAlone(filters: string[]): Promise<boolean> {
  const keeper = openKeeper()
  aborter.signal.addEventListener('abort', () => keeper.close())
  try {
    const services = await startTestServices(keeper, readEnvironment(process.env))
    try {
      Object.assign(process.env, toVariables(services))
      const results = await runPackage(filters)
      console.log(summary(results))
      return isGreen(results)
    } finally {
      await services.close()
    }
  } finally {
    await keeper.close()
  }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => aborter.abort())
// pnpm hands over the "--" of `pnpm test -- login`.
const filters = process.argv.slice(2).filter((argument) => argument !== '--')
try {
  const green = findTestEnvironment() ? (await runPackage(filters)).failed === 0 : await runAlone(filters)
  process.exitCode = green ? 0 : 1
} catch (error) {
  if (!aborter.signal.aborted) report(error)
  process.exitCode = 1
}
