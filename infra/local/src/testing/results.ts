// Passes the test results of packages to the run that started them.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface TestResults {
  passed: number
  failed: number
  skipped: number
}

const variable = 'SPILLWAY_TEST_RESULTS_DIR'

/** The variable that tells packages where to put their results. */
export function resultsVariable(dir: string): NodeJS.ProcessEnv {
  mkdirSync(dir, { recursive: true })
  return { [variable]: dir }
}

/**
 * Writes the results of a package for its run, if it is part of one. Before its tests start, a package writes one failure, which remains
 * if the package ends abnormally.
 */
export function noteResults(packageName: string, results: TestResults): void {
  const dir = process.env[variable]
  if (dir) writeFileSync(join(dir, `${packageName.replaceAll('/', '+')}.json`), JSON.stringify(results))
}

/** The sum over all packages that noted results. */
export function sumResults(dir: string): TestResults {
  const sum: TestResults = { passed: 0, failed: 0, skipped: 0 }
  for (const name of readdirSync(dir)) {
    const results: Partial<TestResults> = JSON.parse(readFileSync(join(dir, name), 'utf8'))
    sum.passed += results.passed ?? 0
    sum.failed += results.failed ?? 0
    sum.skipped += results.skipped ?? 0
  }
  return sum
}

/** The last line of a run's output. */
export function summary({ passed, failed, skipped }: TestResults): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

/** Whether a run may end with exit code 0: something ran, and nothing failed. */
export function isGreen({ passed, failed }: TestResults): boolean {
  return failed === 0 && passed > 0
}
