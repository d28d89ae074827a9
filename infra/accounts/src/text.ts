// The text of a file: unpacked, checked to be UTF-8, and divided into lines, a chunk at a time.
import { isUtf8 } from 'node:buffer'
import { createReadStream } from 'node:fs'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { UserError } from '@spillway/infra/processes/command-line'

const NEWLINE = 0x0a
const GZIP = Buffer.from([0x1f, 0x8b])

/**
 * Without a byte order mark. Throws a UserError of one sentence for a file that cannot be read,
 * where it ends to be text.
 */
export async function* readText(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const name = file.split('/').at(-1) ?? file
  let newlines = 0
  let isFirst = true
  for await (const chunk of readBytes(file, name, () => newlines)) {
    if (isFirst) refuseUtf16(chunk, name)
    isFirst = false
    let text: string
    try {
      text = decoder.decode(chunk, { stream: true })
    } catch {
      throw notUtf8(name, newlines + newlinesBeforeWrong(chunk) + 1)
    }
    newlines += newlinesIn(chunk)
    yield text
  }
  try {
    decoder.decode()
  } catch {
    throw notUtf8(name, newlines + 1)
  }
}

async function* readBytes(file: string, name: string, newlines: () => number): AsyncGenerator<Buffer> {
  const raw = createReadStream(file)
  try {
    yield* file.endsWith('.gz') ? await unpack(raw, name) : raw
  } catch (error) {
    if (error instanceof UserError) throw error
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'Z_BUF_ERROR')
      throw new UserError(`${name} is cut off: it ends after line ${newlines()}, in the middle of a block.`)
    if (typeof code === 'string' && code.startsWith('Z_'))
      throw new UserError(`${name} is damaged after line ${newlines()}: it cannot be unpacked any further.`)
    throw new UserError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

async function unpack(raw: Readable, name: string): Promise<Readable> {
  for await (const chunk of raw.iterator({ destroyOnReturn: false })) {
    if (!GZIP.equals(chunk.subarray(0, 2)))
      throw new UserError(`${name} is no gzip file, though its name ends with .gz.`)
    raw.unshift(chunk)
    break
  }
  const unpacked = createGunzip()
  pipeline(raw, unpacked, () => undefined)
  return unpacked
}

/** UTF-16 has a byte order mark, or a NUL in each character of ASCII. */
function refuseUtf16(chunk: Buffer, name: string): void {
  const [one, two] = chunk
  const isMarked = (one === 0xff && two === 0xfe) || (one === 0xfe && two === 0xff)
  if (isMarked || (chunk.length > 1 && (one === 0 || two === 0)))
    throw new UserError(`${name} is UTF-16: convert it by "iconv -f UTF-16 -t UTF-8".`)
}

function notUtf8(name: string, line: number): UserError {
  return new UserError(
    `${name} is no UTF-8 in line ${line}: if it is Latin-1, convert it by "iconv -f LATIN1 -t UTF-8".`,
  )
}

function newlinesIn(chunk: Buffer): number {
  let count = 0
  for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) count++
  return count
}

/** The first bytes may end a character of the chunk before, which is not wrong. */
function newlinesBeforeWrong(chunk: Buffer): number {
  let start = Math.max(
    chunk.subarray(0, 4).findIndex((byte) => (byte & 0xc0) !== 0x80),
    0,
  )
  for (let count = 0; ; count++) {
    const end = chunk.indexOf(NEWLINE, start)
    if (end < 0 || !isUtf8(chunk.subarray(start, end))) return count
    start = end + 1
  }
}

/** Lines of a text that comes in chunks, with their numbers. */
export interface TextLine {
  /** From 1. */
  number: number
  /** Without its end. */
  text: string
}

/** By line feeds, as all exports have them; a carriage return before one is left out. */
export async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<TextLine[]> {
  let rest = ''
  let number = 0
  for await (const chunk of chunks) {
    const texts = (rest + chunk).split('\n')
    rest = texts.pop() ?? ''
    yield texts.map((text) => ({ number: ++number, text: withoutReturn(text) }))
  }
  if (rest !== '') yield [{ number: number + 1, text: withoutReturn(rest) }]
}

function withoutReturn(text: string): string {
  return text.endsWith('\r') ? text.slice(0, -1) : text
}

/** One record, or why a line holds no record. */
export interface Line {
  /** From 1. The first line of a record of CSV; in a JSON document the number of the record. */
  number: number
  record: Record<string, unknown> | undefined
  /** Why there is no record. */
  problem?: string
}
