// `pnpm accounts breached`: makes the lists of passwords that new ones must not be in, from their
// SHA-1 in ascending order. Memory does not grow with the list.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { HEADER_BYTES, headerLine } from '@spillway/api/breached-list'
import { fold } from '@spillway/api/credentials'
import { parseCommandLine, UserError, whole } from '@spillway/infra/processes/command-line'
import { dictionary } from '@zxcvbn-ts/language-common'

const help = `pnpm accounts breached build FILE --top N --out FILE
pnpm accounts breached common

build   makes a list for BREACHED_PASSWORDS_FILE of the gateways from FILE, the SHA-1 list of Have I Been Pwned, ordered by hash:
        lines of SHA1:count, as https://github.com/HaveIBeenPwned/PwnedPasswordsDownloader downloads them. Reads it twice.
common  makes the list that ships anew

  --top N     the N most frequent passwords
  --out FILE  where the list goes
  --help      prints this
`

const options = {
  top: { type: 'string' },
  out: { type: 'string' },
} as const

export async function breached(args: readonly string[], say: (text: string) => void): Promise<void> {
  const { values, positionals } = parseCommandLine('pnpm accounts breached', args, options, { allowPositionals: true })
  if (values.help) return say(help)
  const [command, file, ...rest] = positionals
  if (command === 'common' && file === undefined) {
    await writeCommonList()
    return say(`Wrote ${commonListFile}.`)
  }
  const { top, out } = values
  if (command !== 'build' || file === undefined || rest.length > 0 || out === undefined || top === undefined)
    throw new UserError('Say build FILE, --top and --out: see "pnpm accounts breached --help".')
  const most = whole('--top', top)
  await stat(file).catch((cause) => {
    throw new UserError(`${file} cannot be read.`, { cause })
  })
  const threshold = await findThreshold(file, most)
  await writeList(out, chosenHashes(file, threshold), threshold.entries)
  const { size } = await stat(out)
  say(
    `Wrote ${threshold.entries} passwords, each found ${threshold.minCount} times or more, to ${out}: ${(size / 2 ** 20).toFixed(1)} MiB, ` +
      `which each gateway keeps in memory. Of other passwords one in ${2 ** ONE_IN_BITS} is refused, at the most.`,
  )
}

/** One in 2^20 passwords that are not listed is taken for a listed one, at the most. */
const ONE_IN_BITS = 20

async function writeList(
  out: string,
  hashes: Iterable<readonly string[]> | AsyncIterable<readonly string[]>,
  entries: number,
): Promise<void> {
  if (entries === 0) throw new UserError('No password is left for the list.')
  const prefixBytes = Math.ceil((Math.log2(entries) + ONE_IN_BITS) / 8)
  const unfinished = `${out}.unfinished`
  const file = await open(unfinished, 'w')
  try {
    const checksum = createHash('sha256')
    await file.write(Buffer.alloc(HEADER_BYTES))
    let last = ''
    for await (const batch of hashes) {
      const prefixes = batch.map((hash) => hash.slice(0, 2 * prefixBytes))
      const content = Buffer.from(prefixes.filter((prefix, n) => prefix !== (prefixes[n - 1] ?? last)).join(''), 'hex')
      last = prefixes.at(-1) ?? last
      checksum.update(content)
      await file.writeFile(content)
    }
    const sha256 = checksum.digest('hex')
    await file.write(headerLine({ format: 'spillway-prefixes-1', entries, prefixBytes, sha256 }), 0, HEADER_BYTES, 0)
    await file.close()
    await rename(unfinished, out)
  } catch (error) {
    await file.close().catch(() => undefined)
    await rm(unfinished, { force: true })
    throw error
  }
}

// The list that ships: the 50,000 passwords that leaks hold most often, from the package
// @zxcvbn-ts/language-common (MIT).

export const commonListFile = fileURLToPath(new URL('../../../api/src/passwords/common.list', import.meta.url))
export const commonPasswords: readonly string[] = dictionary['passwords-common'] ?? []

export async function writeCommonList(out = commonListFile): Promise<void> {
  const hashes = new Set(commonPasswords.map((password) => createHash('sha1').update(fold(password)).digest('hex')))
  await writeList(out, [[...hashes].sort()], hashes.size)
}

// Have I Been Pwned's list: lines of `SHA1:count`, ordered by hash; the most frequent are taken.

const CHUNK_BYTES = 1024 * 1024

interface Entry {
  hash: string
  count: number
}

/** The entries in batches. Throws a UserError for a line of another format or out of order. */
async function* readEntries(file: string): AsyncGenerator<Entry[]> {
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

/** The chosen entries: their number, least count, and how many of the first have that count. */
interface Threshold {
  entries: number
  minCount: number
  ofMinCount: number
}

/** Reads the whole list once: of the counts, only how often each occurs is kept. */
async function findThreshold(file: string, most: number): Promise<Threshold> {
  const occurrences = new Map<number, number>()
  for await (const batch of readEntries(file))
    for (const { count } of batch) occurrences.set(count, (occurrences.get(count) ?? 0) + 1)
  const threshold = { entries: 0, minCount: Number.POSITIVE_INFINITY, ofMinCount: 0 }
  for (const [count, number] of [...occurrences].sort(([a], [b]) => b - a)) {
    if (threshold.entries === most) break
    threshold.minCount = count
    threshold.ofMinCount = Math.min(number, most - threshold.entries)
    threshold.entries += threshold.ofMinCount
  }
  return threshold
}

async function* chosenHashes(file: string, { minCount, ofMinCount }: Threshold): AsyncGenerator<string[]> {
  let left = ofMinCount
  const isChosen = ({ count }: Entry) => count > minCount || (count === minCount && left-- > 0)
  for await (const batch of readEntries(file)) yield batch.filter(isChosen).map(({ hash }) => hash)
}
