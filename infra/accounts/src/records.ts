// Reads a file of accounts, one record at a time, so that a file of any size takes no more memory.
import { UserError } from '@spillway/infra/processes/command-line'
import { JSONParser } from '@streamparser/json'
import { readCsv } from './csv.ts'
import { type Line, linesOf, readText, type TextLine } from './text.ts'

/** Throws a UserError where the file cannot be read any further. */
export async function* readRecords(file: string, columns?: readonly string[]): AsyncGenerator<Line> {
  const name = file.replace(/\.gz$/, '')
  const isCsv = /\.[ct]sv$/.test(name)
  if (!isCsv && !/\.(ndjson|jsonl|json)$/.test(name))
    throw new UserError(`${file} must end with .ndjson, .jsonl, .json, .csv or .tsv, with or without .gz.`)
  const chunks = readText(file)
  const beginning = await begin(chunks)
  const all = after(beginning, chunks)
  if (isCsv) return yield* readCsv(beginning, linesOf(all), columns)
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
    for (const { number, text } of lines) if (text.trim() !== '') yield objectIn(text, number)
}

function objectIn(text: string, number: number): Line {
  try {
    return lineOf(number, JSON.parse(text))
  } catch {
    return { number, problem: 'is not JSON' }
  }
}

function lineOf(number: number, value: unknown): Line {
  return isRecord(value) ? { number, record: value } : { number, problem: 'is not a JSON object' }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The path of the records in a document; undefined for lines of objects. */
function documentPath(beginning: string): string | undefined {
  const text = beginning.trimStart()
  if (text.startsWith('[')) return '$.*'
  const [line = ''] = text.split('\n')
  try {
    const first: unknown = JSON.parse(line)
    return isRecord(first) && Array.isArray(first.users) ? '$.users.*' : undefined
  } catch {
    // An object over several lines, or one line that continues.
    return /^\{\s*$|^\{.*"users"\s*:/s.test(text) ? '$.users.*' : undefined
  }
}

/** The number of a line is the number of its record. What comes after a mistake cannot be read. */
async function* readDocument(chunks: AsyncIterable<string>, path: string): AsyncGenerator<Line> {
  const lines: Line[] = []
  const parser = new JSONParser({ paths: [path], keepStack: false })
  let number = 0
  parser.onValue = ({ value }) => void lines.push(lineOf(++number, value))
  let isDamaged = false
  parser.onError = () => {
    isDamaged = true
  }
  for await (const chunk of chunks) {
    parser.write(chunk)
    yield* lines.splice(0)
    if (isDamaged) break
  }
  // It ends by itself with the document.
  if (!parser.isEnded) yield { number: number + 1, problem: 'is not JSON: the rest of the file was not read' }
}
