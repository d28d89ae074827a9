// The file of the lines that were not imported: their numbers and reasons, and nothing of what they hold.
import { createWriteStream, type WriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'

export interface RejectedLines {
  add(line: number, reason: string): void
  /** How many, by reason. */
  counts: ReadonlyMap<string, number>
  close(): Promise<void>
}

/** Creates the file with the first line that is added. */
export function rejectedLines(file: string): RejectedLines {
  const counts = new Map<string, number>()
  let stream: WriteStream | undefined
  return {
    counts,
    add(line, reason) {
      stream ??= createWriteStream(file, { mode: 0o600 })
      stream.write(`${JSON.stringify({ line, reason })}\n`)
      counts.set(reason, (counts.get(reason) ?? 0) + 1)
    },
    async close() {
      if (stream === undefined) return
      stream.end()
      await finished(stream)
    },
  }
}
