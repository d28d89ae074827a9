import type { Results } from '../src/results.ts'
export function renderReport(results: Results): string {
  return JSON.stringify(results.machine)
}
