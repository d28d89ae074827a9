// Reads a file of accounts, one record at a time, so that a file of any size takes no more memory: NDJSON (a JSON object on each line), a
// JSON document, or CSV with a line of names, each of them compressed with gzip or not.
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { UserError } from '@spillway/local/processes/user-error'
import { type CsvError, type Info, parse } from 'csv-parse'
import { documentPath, readDocument } from './json-document.ts'

/** One record, or why a line holds none. */
export interface Line {
  /** From 1. Of a record over several lines of CSV, the last one; of a JSON document, the record's own number. */
  number: number
  record: Record<string, unknown> | undefined
  /** Why there is no record. */
  problem?: string
}

/** Throws a UserError for a file that cannot be read. */
export async function* readRecords(file: string): AsyncGenerator<Line> {
  const name = file.replace(/\.gz$/, '')
  const kind = /\.(ndjson|jsonl|json)$/.test(name) ? 'json' : /\.csv$/.test(name) ? 'csv' : undefined
  if (kind === undefined)
    throw new UserError(`${file} must end with .ndjson, .jsonl, .json or .csv, with or without .gz.`)
  const failed = { error: undefined as Error | undefined }
  const bytes = openBytes(file, (error) => (failed.error ??= error))
  yield* kind === 'json' ? readJson(bytes) : readCsv(bytes)
  if (failed.error !== undefined) throw new UserError(`${file} cannot be read: ${failed.error.message}`)
}

function openBytes(file: string, onError: (error: Error) => void): Readable {
  const raw = createReadStream(file)
  if (!file.endsWith('.gz')) return raw.on('error', onError)
  const unpacked = createGunzip()
  pipeline(raw, unpacked, (error) => error && onError(error))
  return unpacked
}

async function* readJson(bytes: Readable): AsyncGenerator<Line> {
  const path = await documentPath(bytes)
  yield* path === undefined ? readNdjson(bytes) : readDocument(bytes, path)
}

async function* readNdjson(bytes: Readable): AsyncGenerator<Line> {
  let number = 0
  for await (const text of createInterface({ input: bytes, crlfDelay: Number.POSITIVE_INFINITY })) {
    number++
    if (text.trim() === '') continue
    yield { number, ...objectIn(text) }
  }
}

function objectIn(text: string): Omit<Line, 'number'> {
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return { record: value }
    return { record: undefined, problem: 'is no JSON object' }
  } catch {
    return { record: undefined, problem: 'is no JSON' }
  }
}

async function* readCsv(bytes: Readable): AsyncGenerator<Line> {
  const skipped: Line[] = []
  const options = { columns: true, info: true, bom: true, skip_empty_lines: true, skip_records_with_error: true }
  const parser = parse(options).on('skip', (error: CsvError & { lines?: number }) => {
    skipped.push({ number: error.lines ?? 0, record: undefined, problem: 'is no line of this CSV' })
  })
  bytes.on('error', () => parser.end())
  bytes.pipe(parser)
  for await (const { record, info } of parser as AsyncIterable<{ record: Record<string, unknown>; info: Info }>) {
    yield* skipped.splice(0)
    yield { number: info.lines, record }
  }
  yield* skipped
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
