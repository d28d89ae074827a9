// Reads CSV. Every row is read or refused by the number of its line: what a stray quote swallows is
// given back and read again, from the next line on.
import { UserError } from '@spillway/infra/processes/command-line'
import { CsvError } from 'csv-parse'
import { parse } from 'csv-parse/sync'
import type { Line, TextLine } from './text.ts'

const TOGETHER = 2_000
/** A quoted value over more lines is a quote that was never closed. */
const RECORD_LINES_MAX = 100
const DELIMITERS = [',', ';', '\t'] as const

/** @param columns of files that have no line of names */
export async function* readCsv(batches: AsyncIterable<TextLine[]>, columns?: readonly string[]): AsyncGenerator<Line> {
  let reader: Reader | undefined
  let held: TextLine[] = []
  for await (const lines of batches) {
    held.push(...lines)
    reader ??= begin(held, columns)
    if (reader === undefined || held.length < TOGETHER) continue
    const { records, left } = readSome(reader, held, false)
    held = left
    yield* records
  }
  if (reader !== undefined) yield* readSome(reader, held, true).records
}

interface Reader {
  columns: readonly string[]
  delimiter: string
}

/** Takes the line of names from the lines, if there is one. Names are compared in lower case. */
function begin(held: TextLine[], columns: readonly string[] | undefined): Reader | undefined {
  while (held[0]?.text.trim() === '') held.shift()
  // The line `sep=;` is for Excel.
  const [, separator] = /^"?sep=(.)"?$/i.exec(held[0]?.text ?? '') ?? []
  const first = held[separator === undefined ? 0 : 1]
  if (first === undefined) return undefined
  if (separator !== undefined) held.shift()
  const delimiter = separator ?? delimiterOf(first.text)
  if (columns !== undefined) return { columns, delimiter }
  held.shift()
  let names: string[]
  try {
    names = parse(first.text, { delimiter })[0] ?? []
  } catch {
    throw new UserError(`Line ${first.number} holds no names of columns: it has a quote that is not closed.`)
  }
  return { columns: names.map((name) => name.trim().toLowerCase()), delimiter }
}

function delimiterOf(text: string): string {
  const outside = text.replace(/"[^"]*"/g, '')
  const counts = DELIMITERS.map((delimiter) => outside.split(delimiter).length)
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ','
}

/** Reads all complete records. At the end of the file, an open quote is one that never closes. */
function readSome(reader: Reader, lines: TextLine[], isEnd: boolean): { records: Line[]; left: TextLine[] } {
  const records: Line[] = []
  let rest = lines
  while (rest.length > 0) {
    const { read, failure } = parseWhole(reader, rest)
    records.push(...read.records)
    rest = rest.slice(read.lines)
    if (failure === undefined) return { records, left: [] }
    if (failure === OPEN_QUOTE && !isEnd && rest.length < RECORD_LINES_MAX) return { records, left: rest }
    const number = rest[0]?.number ?? 0
    records.push({ number, record: undefined, problem: failure })
    rest = rest.slice(1)
  }
  return { records, left: [] }
}

interface Parsed {
  read: { records: Line[]; lines: number }
  /** Why the next record cannot be read. */
  failure?: string
}

/** The records up to the first that cannot be read, and how many lines they are. */
function parseWhole({ columns, delimiter }: Reader, lines: readonly TextLine[]): Parsed {
  const records: Line[] = []
  let done = 0
  const skipEmpty = (): void => {
    while (lines[done]?.text.trim() === '') done++
  }
  const onRecord = (values: string[], { lines: last }: { lines: number }): null => {
    skipEmpty()
    if (values.length !== columns.length) throw new UnevenRow()
    const record = Object.fromEntries(values.map((value, n) => [columns[n], value]))
    records.push({ number: lines[done]?.number ?? 0, record })
    done = last
    return null
  }
  const options = { delimiter, relax_column_count: true, skip_empty_lines: true, on_record: onRecord }
  try {
    parse(lines.map(({ text }) => text).join('\n'), options)
    return { read: { records, lines: lines.length } }
  } catch (error) {
    skipEmpty()
    return { read: { records, lines: done }, failure: problemOf(error) }
  }
}

class UnevenRow extends Error {}

const OPEN_QUOTE = 'has a quote that never closes'

function problemOf(error: unknown): string {
  if (error instanceof UnevenRow) return 'has not as many columns as there are names'
  if (!(error instanceof CsvError)) throw error
  return error.code === 'CSV_QUOTE_NOT_CLOSED' ? OPEN_QUOTE : 'has a quote in a wrong place'
}
