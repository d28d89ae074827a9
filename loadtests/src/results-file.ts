// Reads and writes results and their report.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defaultStateDir } from '@spillway/local/processes/repository'
import { UserError } from '@spillway/local/processes/user-error'
import { renderReport } from '../report/report.ts'
import type { Results } from './results.ts'

/** Named for the moment, in the ignored folder that keeps what runs leave behind. */
export function defaultResultsFile(): string {
  return join(defaultStateDir, 'load', `${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}.json`)
}

/** @throws {@link UserError} for a file that is not there or not of this format */
export function readResults(file: string): Results {
  let found: unknown
  try {
    found = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UserError(`${file} cannot be read as results: ${error instanceof Error ? error.message : error}.`)
  }
  if (isResults(found)) return found
  throw new UserError(
    `${file} holds no results of this version's format: measure again with "pnpm load --json ${file}".`,
  )
}

function isResults(value: unknown): value is Results {
  return typeof value === 'object' && value !== null && 'format' in value && value.format === 1 && 'scenarios' in value
}

/** Whole or not at all: an interruption leaves the last complete state. */
export function writeResults(file: string, results: Results): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(results, undefined, 1)}\n`)
  renameSync(`${file}.new`, file)
}

/** Writes the report beside the results and returns its path. */
export function writeReport(file: string, results: Results): string {
  const report = `${file.replace(/\.json$/, '')}.html`
  writeFileSync(report, renderReport(results))
  return report
}
