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
import { linesOf, type TextLine } from './text.ts'

const help = `pnpm accounts breached build FILE --min-count N --out FILE
pnpm accounts breached common

build   makes a list for BREACHED_PASSWORDS_FILE of the gateways from FILE, the SHA-1 list of Have I Been Pwned, ordered by hash:
        lines of SHA1:count, as https://github.com/HaveIBeenPwned/PwnedPasswordsDownloader downloads them
common  makes the list that ships anew

  --min-count N  the passwords that were found so often, or more often
  --out FILE     where the list goes
  --help         prints this
`

const options = {
  'min-count': { type: 'string' },
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
  const { 'min-count': given, out } = values
  if (command !== 'build' || file === undefined || rest.length > 0 || out === undefined || given === undefined)
    throw new UserError('Say build FILE, --min-count and --out: see "pnpm accounts breached --help".')
  const minCount = whole('--min-count', given)
  await stat(file).catch((cause) => {
    throw new UserError(`${file} cannot be read.`, { cause })
  })
  const entries = await writeList(out, hashesIn(file, minCount), LONG_PREFIX_BYTES)
  say(
    `Wrote ${entries} passwords to ${out}: ${((entries * LONG_PREFIX_BYTES) / 2 ** 20).toFixed(1)} MiB, which each gateway keeps in memory.`,
  )
}

/**
 * Of other passwords one in a million, at the most, has the same first bytes as one of the list:
 * of 200 million listed ones.
 */
const LONG_PREFIX_BYTES = 6
const COMMON_PREFIX_BYTES = 5

async function writeList(
  out: string,
  hashes: Iterable<readonly string[]> | AsyncIterable<readonly string[]>,
  prefixBytes: number,
): Promise<number> {
  let entries = 0
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
      entries += batch.length
      checksum.update(content)
      await file.writeFile(content)
    }
    if (entries === 0) throw new UserError('No password is left for the list.')
    const sha256 = checksum.digest('hex')
    await file.write(headerLine({ format: 'spillway-prefixes-1', entries, prefixBytes, sha256 }), 0, HEADER_BYTES, 0)
    await file.close()
    await rename(unfinished, out)
    return entries
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
  await writeList(out, [[...hashes].sort()], COMMON_PREFIX_BYTES)
}

// Have I Been Pwned's list: lines of `SHA1:count`, ordered by hash.

/** In batches. Throws a UserError for a line of another format or out of order. */
async function* hashesIn(file: string, minCount: number): AsyncGenerator<string[]> {
  let before = ''
  const read = ({ number, text }: TextLine): string[] => {
    const [, hash = '', count] = /^([\dA-F]{40}):(\d+)$/i.exec(text) ?? []
    if (count === undefined) throw new UserError(`Line ${number} of ${file} is not SHA1:count.`)
    const upper = hash.toUpperCase()
    if (upper < before)
      throw new UserError(`Line ${number} of ${file} is out of order: take the list that is ordered by hash.`)
    before = upper
    return Number(count) < minCount ? [] : [upper]
  }
  for await (const lines of linesOf(createReadStream(file, 'latin1'))) yield lines.flatMap(read)
}
