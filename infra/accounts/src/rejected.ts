// Files of lines that are written beside an import: of what was not imported, numbers and reasons,
// and nothing of what the lines hold; of ids, the old and the new one.
import { createWriteStream, type WriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'

interface LinesFile {
  add(record: object): void
  close(): Promise<void>
}

/** Created with the first line that is added; with `append` an older file is continued. Its owner alone can read it. */
export function linesFile(file: string, { append }: { append: boolean }): LinesFile {
  let stream: WriteStream | undefined
  return {
    add(record) {
      stream ??= createWriteStream(file, { mode: 0o600, flags: append ? 'a' : 'w' })
      stream.write(`${JSON.stringify(record)}\n`)
    },
    async close() {
      if (stream === undefined) return
      stream.end()
      await finished(stream)
    },
  }
}

export interface RejectedLines {
  add(line: number, reason: string): void
  /** How many, by reason. */
  counts: ReadonlyMap<string, number>
  close(): Promise<void>
}

export function rejectedLines(file: string, options: { append: boolean }): RejectedLines {
  const counts = new Map<string, number>()
  const lines = linesFile(file, options)
  return {
    counts,
    add(line, reason) {
      lines.add({ line, reason })
      // Reasons that name a line are counted together.
      const kind = reason.replace(/ of line \d+$/, ' of an earlier line')
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
    },
    close: lines.close,
  }
}
