// Reads and writes results and their report.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from '@spillway/infra/processes/command-line'
import { defaultStateDir } from '@spillway/infra/processes/repository'
import { renderReport } from '../report/report.ts'
import type { Results, Row } from './results.ts'

/** Named for the moment, in the ignored folder that keeps what runs leave behind. */
export function defaultResultsFile(): string {
  return join(defaultStateDir, 'load', `${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}.json`)
}

/** @throws {@link UserError} for a file that is not there or not of this format */
export function readResults(file: string): Results {
  let found: unknown
  try {
    found = JSON.parse(readFileSync(file, 'utf8'), unpacked)
  } catch (error) {
    throw new UserError(`${file} cannot be read as results: ${error instanceof Error ? error.message : error}.`)
  }
  if (isResults(found)) return found
  throw new UserError(
    `${file} holds no results of this version's format: measure again with "pnpm load --json ${file}".`,
  )
}

function isResults(value: unknown): value is Results {
  return typeof value === 'object' && value !== null && 'format' in value && value.format === 2 && 'scenarios' in value
}

/** Whole or not at all: an interruption leaves the last complete state. */
export function writeResults(file: string, results: Results): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(results, packed)}\n`)
  renameSync(`${file}.new`, file)
}

interface Packed {
  columns: string[]
  rows: unknown[][]
}

/** What makes a file of results small: four digits of a number, since more are noise, and the names of columns once. */
function packed(name: string, value: unknown): unknown {
  if (typeof value === 'number') return Number(value.toPrecision(4))
  if (name !== 'series' || !isObject<Row[]>(value)) return value
  return Object.keys(value).length === 0 ? undefined : mapped(value, pack)
}

function unpacked(name: string, value: unknown): unknown {
  return name === 'series' && isObject<Packed>(value) ? mapped(value, unpack) : value
}

function pack(rows: readonly Row[]): Packed {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  return { columns, rows: rows.map((row) => columns.map((column) => row[column] ?? null)) }
}

function unpack({ columns, rows }: Packed): object[] {
  return rows.map((row) =>
    Object.fromEntries(columns.flatMap((column, index) => (row[index] === null ? [] : [[column, row[index]]]))),
  )
}

function mapped<A, B>(all: Record<string, A>, change: (one: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(all).map(([name, one]) => [name, change(one)]))
}

function isObject<T>(value: unknown): value is Record<string, T> {
  return typeof value === 'object' && value !== null
}

/** Writes the report beside the results; returns its path. */
export function writeReport(file: string, results: Results): string {
  const report = `${file.replace(/\.json$/, '')}.html`
  writeFileSync(report, renderReport(results))
  return report
}
