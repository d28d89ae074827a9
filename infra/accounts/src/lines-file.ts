// Files of lines that are written beside an import: of what was not imported, numbers and reasons,
// and nothing of what the lines hold; of ids, the old and the new one.
import { createWriteStream, type WriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'

/** Created with the first line that is added. Its owner alone can read it. */
export class LinesFile {
  readonly #file: string
  readonly #flags: 'a' | 'w'
  #stream: WriteStream | undefined

  /** With `append` an older file is continued. */
  constructor(file: string, { append }: { append: boolean }) {
    this.#file = file
    this.#flags = append ? 'a' : 'w'
  }

  add(record: object): void {
    this.#stream ??= createWriteStream(this.#file, { mode: 0o600, flags: this.#flags })
    this.#stream.write(`${JSON.stringify(record)}\n`)
  }

  async close(): Promise<void> {
    if (this.#stream === undefined) return
    this.#stream.end()
    await finished(this.#stream)
  }
}
