// The text of a file: unpacked, checked to be UTF-8, and divided into lines, a chunk at a time.
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { UserError } from '@spillway/infra/processes/command-line'

/** Without a byte order mark. Throws a UserError where the file cannot be read any further. */
export async function* readText(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const raw = createReadStream(file)
  // What fails is thrown by the loop.
  const bytes = file.endsWith('.gz') ? pipeline(raw, createGunzip(), () => undefined) : raw
  let lines = 0
  try {
    for await (const chunk of bytes) {
      // A byte order mark of UTF-16. Without one, ASCII in UTF-16 is UTF-8, with a NUL in each character.
      const isMarked = lines === 0 && (chunk.at(0) === 0xff || chunk.at(0) === 0xfe)
      const text = isMarked ? '\0' : decoder.decode(chunk, { stream: true })
      if (text.includes('\0')) throw new UserError(`${file} is not UTF-8: convert it by "iconv -f UTF-16 -t UTF-8".`)
      lines += text.split('\n').length - 1
      yield text
    }
    decoder.decode()
  } catch (error) {
    if (error instanceof UserError) throw error
    const { code = '', message = '' }: { code?: string; message?: string } = Object(error)
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA')
      throw new UserError(
        `${file} is not UTF-8 after line ${lines}: if it is Latin-1, convert it by "iconv -f LATIN1 -t UTF-8".`,
      )
    if (code.startsWith('Z_'))
      throw new UserError(`${file} is not a gzip file, or is damaged or cut off after line ${lines}.`)
    throw new UserError(`${file} cannot be read: ${message}`)
  }
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
  record?: Record<string, unknown>
  problem?: string
}
