// Reads CSV, a row at a time, with the number of its first line.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { UserError } from '@spillway/infra/processes/command-line'
import { CsvError, parse } from 'csv-parse'
import type { Line, TextLine } from './text.ts'

/** In bytes. A longer row has a quote that was never closed. */
const ROW_MAX = 1_048_576
const DELIMITERS = [',', ';', '\t'] as const

/**
 * Throws a UserError at a misplaced quote: nobody knows which rows it swallowed.
 *
 * @param beginning at least the first line
 * @param columns of files that have no line of names
 */
export async function* readCsv(
  beginning: string,
  batches: AsyncIterable<TextLine[]>,
  columns?: readonly string[],
): AsyncGenerator<Line> {
  // The line `sep=;` is for Excel.
  const [, separator] = /^"?sep=(.)"?\r?\n/i.exec(beginning) ?? []
  let next = separator === undefined ? 1 : 2
  const parser = parse({
    delimiter: separator ?? delimiterOf(beginning),
    from_line: next,
    max_record_size: ROW_MAX,
    relax_column_count: true,
    skip_empty_lines: true,
    info: true,
    on_record: (row, { lines }) => {
      next = lines + 1
      return row
    },
  })
  const read = pipeline(Readable.from(textsOf(batches)), parser).catch(() => undefined)
  let names = columns
  try {
    for await (const { record: values, info } of parser as AsyncIterable<Row>) {
      const number = info.lines - values.join('').split('\n').length + 1
      if (names === undefined) names = values.map((name) => name.trim().toLowerCase())
      else if (values.length !== names.length)
        yield { number, problem: 'has another number of columns than the header line' }
      else yield { number, record: Object.fromEntries(names.map((name, n) => [name, values[n]])) }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new UserError(
      `The row that begins in line ${next} has a quote in a wrong place, or one that never closes: correct it, and import the file again.`,
    )
  }
  await read
}

interface Row {
  record: string[]
  /** Its last line. */
  info: { lines: number }
}

async function* textsOf(batches: AsyncIterable<TextLine[]>): AsyncGenerator<string> {
  for await (const lines of batches) yield lines.map(({ text }) => `${text}\n`).join('')
}

/** The one that is most often in the first line. */
function delimiterOf(beginning: string): string {
  const [first = ''] = beginning.trimStart().split('\n', 1)
  const outside = first.replace(/"[^"]*"/g, '')
  const counts = DELIMITERS.map((delimiter) => outside.split(delimiter).length)
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ','
}
