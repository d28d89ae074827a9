// Reads a JSON document of accounts a record at a time: an array of them, as Django's dumpdata writes it, or an object whose `users` is one,
// as `firebase auth:export` does.
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { JSONParser } from '@streamparser/json'
import { isRecord, type Line } from './records.ts'

const ARRAY = /^\s*\[/
const OF_USERS = /^\s*\{\s*"users"\s*:\s*\[/

/** The path of the records in the document that a stream begins with; undefined for anything else. The stream loses nothing. */
export async function documentPath(bytes: Readable): Promise<string | undefined> {
  // It is also emitted at the end of an empty stream. What is wrong with the stream is told by whoever reads it.
  await once(bytes, 'readable').catch(() => undefined)
  const chunk: Buffer | null = bytes.read()
  if (chunk === null) return undefined
  bytes.unshift(chunk)
  const beginning = chunk.toString('utf8').replace(/^\ufeff/, '')
  if (ARRAY.test(beginning)) return '$.*'
  return OF_USERS.test(beginning) ? '$.users.*' : undefined
}

/** The number of a line is that of its record. What comes after a mistake cannot be read. */
export async function* readDocument(bytes: Readable, path: string): AsyncGenerator<Line> {
  const lines: Line[] = []
  const parser = new JSONParser({ paths: [path], keepStack: false })
  let number = 0
  parser.onValue = ({ value }) => {
    number++
    lines.push(
      isRecord(value) ? { number, record: value } : { number, record: undefined, problem: 'is no JSON object' },
    )
  }
  const takes = (chunk: Buffer): boolean => {
    try {
      parser.write(chunk)
      return true
    } catch {
      return false
    }
  }
  try {
    for await (const chunk of bytes) {
      if (!takes(chunk)) break
      yield* lines.splice(0)
    }
  } catch {
    // Whoever opened the stream tells what is wrong with it.
    return
  }
  yield* lines
  // It ends by itself with the document.
  if (!parser.isEnded)
    yield { number: number + 1, record: undefined, problem: 'is no JSON, nor is what comes after it' }
}
