// Reads a JSON document of accounts a record at a time: an array of them, as Django's dumpdata writes it, or an object whose `users` is one,
// as `firebase auth:export` and Keycloak's export of a realm do.
import { JSONParser } from '@streamparser/json'
import { isRecord, type Line } from './records.ts'

/** The path of the records in a document that begins so; undefined for lines of objects. */
export function documentPath(beginning: string): string | undefined {
  const text = beginning.trimStart()
  if (text.startsWith('[')) return '$.*'
  const [line = ''] = text.split('\n')
  try {
    const first: unknown = JSON.parse(line)
    return isRecord(first) && Array.isArray(first.users) ? '$.users.*' : undefined
  } catch {
    // An object over several lines, or one line that goes on.
    return /^\{\s*$|^\{.*"users"\s*:/s.test(text) ? '$.users.*' : undefined
  }
}

/** The number of a line is the number of its record. What comes after a mistake cannot be read. */
export async function* readDocument(chunks: AsyncIterable<string>, path: string): AsyncGenerator<Line> {
  const lines: Line[] = []
  const parser = new JSONParser({ paths: [path], keepStack: false })
  let number = 0
  parser.onValue = ({ value }) => {
    number++
    lines.push(
      isRecord(value) ? { number, record: value } : { number, record: undefined, problem: 'is no JSON object' },
    )
  }
  const takes = (chunk: string): boolean => {
    try {
      parser.write(chunk)
      return true
    } catch {
      return false
    }
  }
  for await (const chunk of chunks) {
    if (!takes(chunk)) break
    yield* lines.splice(0)
  }
  yield* lines
  // It ends by itself with the document.
  if (!parser.isEnded)
    yield { number: number + 1, record: undefined, problem: 'is no JSON, nor is what comes after it' }
}
