// Runs test files in Vitest, and counts how they ended.
import { createVitest, type TestModule, type TestSpecification, type TestSuite } from 'vitest/node'
import { isUsual, LongestFirst, optionsFor } from './levels.ts'

interface TestResults {
  passed: number
  failed: number
  skipped: number
}

interface TestRun {
  /** The folder whose test files are run. */
  root: string
  /** Parts of paths: files whose path contains one of them [every file that belongs to the run]. */
  filters: string[]
  /** Includes the level `all`, which filters reach in any case. */
  all: boolean
  /** Starts what the chosen levels stand on; its end is awaited. */
  prepare(levels: ReadonlySet<string>): Promise<{ close(): Promise<void> }>
  /** Ends the run early. */
  signal: AbortSignal
}

export const nothing: TestResults = { passed: 0, failed: 0, skipped: 0 }

/** Runs the chosen files. Resolves with how their tests ended; zeros if no file fits. */
export async function runTests({ root, filters, all, prepare, signal }: TestRun): Promise<TestResults> {
  // Among the options the sequencer would replace each level's own `sequence`.
  const vitest = await createVitest(
    'test',
    { config: false, ...optionsFor(root) },
    { test: { sequence: { sequencer: LongestFirst } } },
  )
  try {
    await vitest.standalone()
    const found = await vitest.globTestSpecifications(filters)
    const chosen = all || filters.length > 0 ? found : found.filter(isUsual)
    if (chosen.length === 0) return nothing
    const services = await prepare(new Set(chosen.map(({ project }) => project.name)))
    try {
      const stopped = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
      const run = await Promise.race([vitest.runTestSpecifications(fillingPauses(chosen), true), stopped])
      // Closing ends the processes of the files that run.
      return run ? count(run.testModules, run.unhandledErrors.length) : { ...nothing, failed: 1 }
    } finally {
      await services.close()
    }
  } finally {
    await vitest.close()
  }
}

/**
 * Units run among service tests, if there are any: they compute while those wait. One process for
 * units alone would leave cores idle.
 */
function fillingPauses(files: TestSpecification[]): TestSpecification[] {
  const service = files.find(({ project }) => project.name === 'service')?.project
  if (service === undefined) return files
  return files.map((file) => (file.project.name === 'unit' ? service.createSpecification(file.moduleId) : file))
}

/**
 * Counts each error outside of a test as a test that failed: a file that cannot be loaded, a hook,
 * a rejection that nobody handles.
 */
function count(modules: readonly TestModule[], errorsElsewhere: number): TestResults {
  const results = { ...nothing, failed: errorsElsewhere }
  for (const module of modules) {
    const around: (TestModule | TestSuite)[] = [module, ...module.children.allSuites()]
    results.failed += around.filter((each) => each.errors().length > 0).length
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      // A test that was not run must not look like one that passed.
      results[state === 'pending' ? 'failed' : state] += 1
    }
  }
  return results
}

/** The last line of a run's output. */
export function summary({ passed, failed, skipped }: TestResults): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

/** Whether a run may end with exit code 0: something ran, and nothing failed. */
export function isGreen({ passed, failed }: TestResults): boolean {
  return failed === 0 && passed > 0
}
