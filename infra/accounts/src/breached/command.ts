// The command `pnpm accounts breached`: makes the lists of passwords that new ones must not be in.
import { stat } from 'node:fs/promises'
import { parseCommandLine, UserError, whole } from '@spillway/infra/processes/command-line'
import { chosenHashes, commonListFile, findThreshold, writeCommonList, writeList } from './write.ts'

const help = `pnpm accounts breached build FILE --top N|--min-count N --out FILE
pnpm accounts breached common

build   makes a list for BREACHED_PASSWORDS_FILE of the gateways from FILE, the SHA-1 list of Have I Been Pwned, ordered by hash:
        lines of SHA1:count, as https://github.com/HaveIBeenPwned/PwnedPasswordsDownloader downloads them. Reads it twice.
common  makes the list that ships anew

  --top N        the N most frequent passwords
  --min-count N  those that were found N times or more
  --one-in N     of passwords that are not listed one in N is refused, at the most; up to the next power of two [1000000]
  --out FILE     where the list goes
  --help         prints this
`

const options = {
  top: { type: 'string' },
  'min-count': { type: 'string' },
  'one-in': { type: 'string' },
  out: { type: 'string' },
} as const

/** Runs the command, and says what it wrote. Throws a UserError for what its user can mend. */
export async function breached(args: readonly string[], say: (text: string) => void): Promise<void> {
  const { values, positionals } = parseCommandLine('pnpm accounts breached', args, options, { allowPositionals: true })
  if (values.help) return say(help)
  const [command, file, ...rest] = positionals
  if (command === 'common' && file === undefined) {
    await writeCommonList()
    return say(`Wrote ${commonListFile}.`)
  }
  const { top, out } = values
  const minCount = values['min-count']
  if (
    command !== 'build' ||
    file === undefined ||
    rest.length > 0 ||
    out === undefined ||
    (top === undefined) === (minCount === undefined)
  )
    throw new UserError('Say build FILE, --top or --min-count, and --out: see "pnpm accounts breached --help".')
  const oneInBits = Math.ceil(Math.log2(whole('--one-in', values['one-in'] ?? '1000000', { least: 2, most: 2 ** 30 })))
  const choice = top === undefined ? { minCount: whole('--min-count', minCount ?? '') } : { top: whole('--top', top) }
  await stat(file).catch((cause) => {
    throw new UserError(`${file} cannot be read.`, { cause })
  })
  const threshold = await findThreshold(file, choice)
  await writeList(out, chosenHashes(file, threshold), { entries: threshold.entries, oneInBits })
  const { size } = await stat(out)
  say(
    `Wrote ${threshold.entries} passwords, each found ${threshold.minCount} times or more, to ${out}: ${(size / 2 ** 20).toFixed(1)} MiB, ` +
      `which each gateway keeps in memory. Of other passwords one in ${2 ** oneInBits} is refused, at the most.`,
  )
}
