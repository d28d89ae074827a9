// The public list of breached passwords (Have I Been Pwned): lines of `SHA1:count`, ordered by hash, of which the most frequent ones are taken.
import { createReadStream } from 'node:fs'
import { UserError } from '@spillway/local/processes/command-line'

const CHUNK_BYTES = 1024 * 1024

export interface Entry {
  hash: string
  /** How often it was found. */
  count: number
}

export type Choice = { top: number } | { minCount: number }

/** The entries in batches. Throws a UserError for a line of another format or out of order. */
export async function* readEntries(file: string): AsyncGenerator<Entry[]> {
  let rest = ''
  let line = 0
  let before = ''
  const parse = (text: string): Entry => {
    line += 1
    const [, hash = '', count] = /^([\dA-F]{40}):(\d+)\r?$/i.exec(text) ?? []
    if (count === undefined) throw new UserError(`Line ${line} of ${file} is not SHA1:count.`)
    const upper = hash.toUpperCase()
    if (upper < before)
      throw new UserError(`Line ${line} of ${file} is out of order: take the list that is ordered by hash.`)
    before = upper
    return { hash: upper, count: Number(count) }
  }
  for await (const chunk of createReadStream(file, { encoding: 'latin1', highWaterMark: CHUNK_BYTES })) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    yield lines.map(parse)
  }
  if (rest !== '') yield [parse(rest)]
}

/** How many entries are chosen, and from which count on; of those with just that count, how many of the first. */
export interface Threshold {
  entries: number
  minCount: number
  ofMinCount: number
}

/** Reads the whole list once: of the counts, only how often each occurs is kept. */
export async function findThreshold(file: string, choice: Choice): Promise<Threshold> {
  const occurrences = new Map<number, number>()
  for await (const batch of readEntries(file))
    for (const { count } of batch) occurrences.set(count, (occurrences.get(count) ?? 0) + 1)
  const most = 'top' in choice ? choice.top : Number.POSITIVE_INFINITY
  const least = 'top' in choice ? 0 : choice.minCount
  const threshold = { entries: 0, minCount: Number.POSITIVE_INFINITY, ofMinCount: 0 }
  for (const [count, number] of [...occurrences].sort(([a], [b]) => b - a)) {
    if (count < least || threshold.entries === most) break
    threshold.minCount = count
    threshold.ofMinCount = Math.min(number, most - threshold.entries)
    threshold.entries += threshold.ofMinCount
  }
  return threshold
}

/** The hashes of the chosen entries, in order. */
export async function* chosenHashes(file: string, { minCount, ofMinCount }: Threshold): AsyncGenerator<string[]> {
  let left = ofMinCount
  const isChosen = ({ count }: Entry) => count > minCount || (count === minCount && left-- > 0)
  for await (const batch of readEntries(file)) yield batch.filter(isChosen).map(({ hash }) => hash)
}
