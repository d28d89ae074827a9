// Reads a file of accounts, one record at a time, so that a file of any size takes no more memory: NDJSON (a JSON object on each line), a
// JSON document, or CSV, each of them compressed with gzip or not.
import { UserError } from '@spillway/local/processes/command-line'
import { readCsv } from './csv.ts'
import { documentPath, readDocument } from './json-document.ts'
import { linesOf, type TextLine } from './lines.ts'
import { readText } from './text.ts'

/** One record, or why a line holds no record. */
export interface Line {
  /** From 1. Of a record over several lines of CSV, the first one; of a JSON document, the record's own number. */
  number: number
  record: Record<string, unknown> | undefined
  /** Why there is no record. */
  problem?: string
}

/**
 * Throws a UserError where the file cannot be read any further.
 *
 * @param columns of a CSV without a line of names
 */
export async function* readRecords(file: string, columns?: readonly string[]): AsyncGenerator<Line> {
  const name = file.replace(/\.gz$/, '')
  if (/\.csv$|\.tsv$/.test(name)) return yield* readCsv(linesOf(readText(file)), columns)
  if (!/\.(ndjson|jsonl|json)$/.test(name))
    throw new UserError(`${file} must end with .ndjson, .jsonl, .json, .csv or .tsv, with or without .gz.`)
  const chunks = readText(file)
  const beginning = await begin(chunks)
  const all = after(beginning, chunks)
  const path = documentPath(beginning)
  yield* path === undefined ? readNdjson(linesOf(all)) : readDocument(all, path)
}

/** Enough to tell what the text is: its first line, or a good part of it. */
async function begin(chunks: AsyncGenerator<string>): Promise<string> {
  let text = ''
  while (text.trim() === '' || (text.length < BEGINNING && !text.trimStart().includes('\n'))) {
    const { value, done } = await chunks.next()
    if (done) break
    text += value
  }
  return text
}
const BEGINNING = 65_536

async function* after(beginning: string, chunks: AsyncGenerator<string>): AsyncGenerator<string> {
  yield beginning
  yield* chunks
}

async function* readNdjson(batches: AsyncIterable<TextLine[]>): AsyncGenerator<Line> {
  for await (const lines of batches)
    for (const { number, text } of lines) if (text.trim() !== '') yield { number, ...objectIn(text) }
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

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
