// The text of a file: unpacked, checked to be UTF-8, and divided into lines, a chunk at a time.
import { isUtf8 } from 'node:buffer'
import { createReadStream } from 'node:fs'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { UserError } from '@spillway/infra/processes/command-line'

const GZIP = Buffer.from([0x1f, 0x8b])

/** Without a byte order mark. Throws a UserError where the file cannot be read any further. */
export async function* readText(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const name = file.split('/').at(-1) ?? file
  let newlines = 0
  /** Decodes a chunk, or the end of the file, at which no character may be open. */
  const decode = (chunk?: Buffer): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      const line = newlines + (chunk === undefined ? 0 : linesBeforeWrong(chunk)) + 1
      throw new UserError(
        `${name} is no UTF-8 in line ${line}: if it is Latin-1, convert it by "iconv -f LATIN1 -t UTF-8".`,
      )
    }
  }
  let isFirst = true
  for await (const chunk of readBytes(file, name, () => newlines)) {
    if (isFirst) refuseUtf16(chunk, name)
    isFirst = false
    const text = decode(chunk)
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) newlines++
    yield text
  }
  decode()
}

async function* readBytes(file: string, name: string, newlines: () => number): AsyncGenerator<Buffer> {
  const raw = createReadStream(file)
  try {
    yield* file.endsWith('.gz') ? await unpack(raw, name) : raw
  } catch (error) {
    if (error instanceof UserError) throw error
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'Z_BUF_ERROR')
      throw new UserError(`${name} is cut off: it ends after line ${newlines()}, in the middle of a block.`)
    if (code.startsWith('Z_'))
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

/** The first bytes may end a character of the chunk before, which is not wrong. */
function linesBeforeWrong(chunk: Buffer): number {
  const lines = chunk
    .toString('latin1')
    .replace(/^[\x80-\xbf]{1,3}/, '')
    .split('\n')
  // The last line may be cut within a character: it is the wrong one if no other is.
  const wrong = lines.slice(0, -1).findIndex((line) => !isUtf8(Buffer.from(line, 'latin1')))
  return wrong < 0 ? lines.length - 1 : wrong
}

export interface TextLine {
  number: number
  text: string
}

/** By line feeds, as all exports have them; a carriage return before one is left out. */
export async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<TextLine[]> {
  let rest = ''
  let number = 0
  for await (const chunk of chunks) {
    const texts = (rest + chunk).split('\n')
    rest = texts.pop() ?? ''
    yield texts.map((text) => ({ number: ++number, text: text.replace(/\r$/, '') }))
  }
  if (rest !== '') yield [{ number: number + 1, text: rest.replace(/\r$/, '') }]
}

export interface Line {
  /** From 1. The first line of a record of CSV; in a JSON document the number of the record. */
  number: number
  record: Record<string, unknown> | undefined
  problem?: string
}
