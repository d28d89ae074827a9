// The last line of a test run: `N passed, N failed`.
import type { Reporter, SerializedError, TestModule, TestSuite } from 'vitest/node'

export default class Counts implements Reporter {
  /** An error outside of a test, in a file, a hook or a rejection, counts as a failed test. */
  onTestRunEnd(modules: readonly TestModule[], errorsElsewhere: readonly SerializedError[]): void {
    const counts = { passed: 0, failed: errorsElsewhere.length, skipped: 0 }
    for (const module of modules) {
      const around: (TestModule | TestSuite)[] = [module, ...module.children.allSuites()]
      counts.failed += around.filter((each) => each.errors().length > 0).length
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        // A test that was not run must not look like one that passed.
        counts[state === 'pending' ? 'failed' : state] += 1
      }
    }
    const { passed, failed, skipped } = counts
    console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  }
}
