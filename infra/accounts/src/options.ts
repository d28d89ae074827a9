// The command line of `pnpm accounts`.
import { parseCommandLine, whole } from '@spillway/local/processes/command-line'
import { UserError } from '@spillway/local/processes/user-error'
import { mapped } from './fields.ts'
import { ownPreset, presets } from './presets.ts'
import { bareDigest } from './weak.ts'

export const help = `pnpm accounts import FILE [options]
pnpm accounts export FILE
pnpm accounts hashes
pnpm accounts formats

import   reads accounts from FILE: NDJSON (.ndjson, .jsonl), a JSON array of them or an object with one as "users" (.json), or CSV with
         a line of names (.csv); also with .gz. The fields are email, passwordHash, id, createdAt and emailConfirmedAt; the last three
         may be missing. emailConfirmedAt is a date, or true for an address that was confirmed at some time: then createdAt is taken.
         Accounts whose address exists are left as they are, so that it can be run again at any time. Lines that are not imported,
         such as those of disabled accounts, go by number and reason to FILE.rejected.ndjson; in a document, records are numbered.
export   writes all accounts to FILE, in the form that import reads; - is standard output.
hashes   counts the accounts by algorithm and cost of their hashes.
formats  lists the formats of stored hashes, who writes them, and whether they rest in the database or inside argon2id.

  --dry-run            counts and checks, and writes nothing
  --preset name        another system's export: ${Object.keys(presets).join(', ')}
  --map a=b,c=d        where the fields are: email=mail,passwordHash=secret.hash
  --weak name          plain hexadecimal digests (md5, sha1, sha256) are hashed with argon2id; others of the file are not concerned
  --salt before|after  where the salt of weak digests is, by the field salt [before the password]
  --from-line n        passes over the lines before, to go on where an import was stopped [1]
  --rejected file      where the lines go that are not imported [FILE.rejected.ndjson]
  --help               prints this

From the environment:

  DATABASE_URL         the database [that of the running pnpm start]
  REDIS_URL, SPILLWAY_SEAL_KEYS, QUEUE_PREFIX
                       of the workers that hash weak digests [a process beside this one hashes them]
  FIREBASE_SIGNER_KEY, FIREBASE_SALT_SEPARATOR
                       for --preset firebase: as the workers have them, who verify by them. They are stored in no account
  FIREBASE_MEM_COST, FIREBASE_ROUNDS
                       the project's mem_cost and rounds [14, 8]
`

const options = {
  'dry-run': { type: 'boolean' },
  preset: { type: 'string' },
  map: { type: 'string' },
  weak: { type: 'string' },
  salt: { type: 'string' },
  'from-line': { type: 'string' },
  rejected: { type: 'string' },
} as const

export type Command = Exclude<ReturnType<typeof parseOptions>, undefined>

/** Undefined when help is asked for. Throws a UserError that names what is wrong. */
export function parseOptions(args: readonly string[]) {
  const { values, positionals } = parseCommandLine('pnpm accounts', args, options, { allowPositionals: true })
  if (values.help) return undefined
  const [name, file, ...rest] = positionals
  if ((name === 'hashes' || name === 'formats') && file === undefined) return { name } as const
  if (rest.length > 0 || file === undefined || (name !== 'import' && name !== 'export'))
    throw new UserError('Say import FILE, export FILE, hashes or formats: see "pnpm accounts --help".')
  if (name === 'export') return { name, file } as const
  const preset = values.preset === undefined ? ownPreset : presets[values.preset]
  if (preset === undefined)
    throw new UserError(`--preset takes one of ${Object.keys(presets).join(', ')}, not "${values.preset}".`)
  return {
    name,
    file,
    dryRun: values['dry-run'] === true,
    preset,
    fields: mapped(preset.fields, values.map),
    bare: bareDigest(values.weak, values.salt),
    fromLine: whole('--from-line', values['from-line'] ?? '1'),
    rejected: values.rejected ?? `${file}.rejected.ndjson`,
  } as const
}
