// The results of a test run.

import type { Durations } from './files.ts'

export interface TestResults {
  passed: number
  failed: number
  skipped: number
  /** Of the files that ran. */
  durations: Durations
}

export const nothing: TestResults = { passed: 0, failed: 0, skipped: 0, durations: {} }

/** The last line of a run's output. */
export function summary({ passed, failed, skipped }: Omit<TestResults, 'durations'>): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

/** Whether a run may end with exit code 0: something ran, and nothing failed. */
export function isGreen({ passed, failed }: Pick<TestResults, 'passed' | 'failed'>): boolean {
  return failed === 0 && passed > 0
}
