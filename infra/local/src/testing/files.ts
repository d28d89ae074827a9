// Runs test files with Node's test runner, each in a process of its own, and counts the results.
import { availableParallelism } from 'node:os'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import type { TestResults } from './results.ts'

/**
 * A file that takes longer hangs. Node 20 gives a runner no limit for single tests: one that may hang by itself sets a
 * timeout of its own.
 */
const fileTimeoutMs = 240_000

/** The suffix of files whose tests cannot share the processors: they run last, one after the other. */
const ALONE = '.alone.test.ts'
/** One more than the processors, because tests wait more than they compute. */
const CONCURRENCY = availableParallelism() + 1

/** Runs these files, reports to standard output, and resolves with the count. An abort ends the files that run. */
export async function runTestFiles(files: string[], signal: AbortSignal): Promise<TestResults> {
  const results: TestResults = { passed: 0, failed: 0, skipped: 0 }
  const alone = files.filter((file) => file.endsWith(ALONE))
  const together = files.filter((file) => !file.endsWith(ALONE))
  if (together.length > 0) await runGroup(together, CONCURRENCY, results, signal)
  if (alone.length > 0) await runGroup(alone, 1, results, signal)
  return results
}

async function runGroup(
  files: string[],
  concurrency: number,
  results: TestResults,
  signal: AbortSignal,
): Promise<void> {
  const stream = run({ files, concurrency, timeout: fileTimeoutMs, signal })
  stream.on('test:pass', ({ name, skip, todo, details }) => {
    // Suites, and files without tests, are not counted.
    if (details.type === 'suite' || files.includes(name)) return
    const left = skip !== undefined || todo !== undefined
    results[left ? 'skipped' : 'passed'] += 1
  })
  stream.on('test:fail', ({ todo, details }) => {
    if (todo !== undefined) results.skipped += 1
    // A suite fails with its tests, which are counted already; a failed hook is counted.
    else if (details.type !== 'suite' || !isSubtestFailure(details.error)) results.failed += 1
  })
  const output = stream.compose(new spec())
  output.pipe(process.stdout)
  await new Promise((resolve, reject) => output.on('end', resolve).on('error', reject))
}

function isSubtestFailure(error: object): boolean {
  return 'failureType' in error && error.failureType === 'subtestsFailed'
}
