// The process of `pnpm test` that runs the test files, each in a process of its own, in the environment of the run. Its arguments: the file
// that takes the results, and the test files in their order.
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import type { TestResults } from './results.ts'

/**
 * A file that takes longer hangs. Node 20 gives a runner no limit for single tests: one that may hang by itself sets a
 * timeout of its own.
 */
const FILE_TIMEOUT_MS = 600_000

/** The suffix of files whose tests cannot share the processors: they run last, one after the other. */
const ALONE = '.alone.test.ts'
/** One more than the processors, because tests wait more than they compute. */
const CONCURRENCY = availableParallelism() + 1

const results: TestResults = { passed: 0, failed: 0, skipped: 0, durations: {} }
const aborter = new AbortController()

async function runFiles(files: string[], concurrency: number): Promise<void> {
  if (files.length === 0 || aborter.signal.aborted) return
  const { signal } = aborter
  // `forceExit` because a worker in a test's own process that was stopped with a job in hand keeps its timers, where a process of its own
  // would end. Connections that are left open to PostgreSQL fail a file all the same (see namespace.ts).
  const stream = run({ files, concurrency, timeout: FILE_TIMEOUT_MS, signal, forceExit: true })
  stream.on('test:complete', ({ name, details }) => {
    if (files.includes(name)) results.durations[name] = Math.round(details.duration_ms)
  })
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

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => aborter.abort())
const [resultsFile = '', ...files] = process.argv.slice(2)
const isAlone = (file: string): boolean => file.endsWith(ALONE)
await runFiles(
  files.filter((file) => !isAlone(file)),
  CONCURRENCY,
)
await runFiles(files.filter(isAlone), 1)
// Tests that were not run must not look like tests that passed.
if (aborter.signal.aborted) results.failed += 1
writeFileSync(resultsFile, JSON.stringify(results))
process.exitCode = results.failed === 0 ? 0 : 1
