// The test files of all packages, the longest first, so that none of them is left over at the end of a run.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'

/** How long test files took when they last ran, in milliseconds, by path. */
export type Durations = Record<string, number>

const durationsFile = join(defaultStateDir, 'test-durations.json')
const SKIPPED = ['node_modules', 'dist', 'target']

/** The test files below a folder whose path from there contains one of the filters, if there are any. */
export function findTestFiles(filters: string[], dir = repositoryDir): string[] {
  return filesUnder(dir)
    .filter((file) => file.endsWith('.test.ts'))
    .filter((file) => filters.length === 0 || filters.some((filter) => relative(dir, file).includes(filter)))
}

function filesUnder(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name)
    if (!entry.isDirectory()) return [path]
    return entry.name.startsWith('.') || SKIPPED.includes(entry.name) ? [] : filesUnder(path)
  })
}

/** Sorts by duration, longest first. What never ran comes before all others, large files first. */
export function longestFirst(files: string[], durations: Durations): string[] {
  const lasting = new Map(
    files.map((file) => [file, durations[file] ?? Number.MAX_SAFE_INTEGER / 2 + statSync(file).size]),
  )
  return files.toSorted((a, b) => (lasting.get(b) ?? 0) - (lasting.get(a) ?? 0))
}

/** The durations that earlier runs of this checkout kept. */
export function readDurations(): Durations {
  try {
    return JSON.parse(readFileSync(durationsFile, 'utf8'))
  } catch {
    // No run has ended yet, or another one is writing them.
    return {}
  }
}

export function keepDurations(durations: Durations): void {
  writeFileSync(durationsFile, JSON.stringify({ ...readDurations(), ...durations }))
}
