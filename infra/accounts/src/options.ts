// The command line of `pnpm accounts`.
import { parseCommandLine, UserError, whole } from '@spillway/infra/processes/command-line'
import { plainDigests } from '@spillway/worker/hashing/methods/digest-programs'
import { mapped } from './fields.ts'
import { ownPreset, presets } from './presets.ts'
import { type BareDigest, composeHash, saltEncodings } from './weak.ts'

export const help = `pnpm accounts import FILE [options]
pnpm accounts export FILE
pnpm accounts hashes
pnpm accounts formats
pnpm accounts operator NAME --role viewer|support|admin
pnpm accounts breached --help

import   reads accounts from FILE: NDJSON (.ndjson, .jsonl), a JSON array of them or an object with one as "users" (.json), or CSV with
         a line of names (.csv, .tsv); also with .gz. Accounts whose address exists are left as they are, and accounts that were deleted
         here, or have another address now, are left out, so that it can be run again at any time. Lines that are not imported go by
         number and reason to FILE.rejected.ndjson, and make the exit code 1. infra/accounts/README.md describes fields and presets.
export   writes all accounts to FILE, in the form that import reads; - is standard output.
hashes   counts the accounts by format and cost of their hashes.
formats  lists the formats of stored hashes, who writes them, and whether they rest in the database or inside argon2id.
operator prints a new token of an operator of the ops port, and the line of OPS_OPERATORS_FILE by which gateways know it.
         viewer looks; support helps people and pauses, resumes and retries; admin may do everything.
breached makes a list of breached passwords that new ones must not be in.

  --dry-run            counts and checks, and writes nothing, not even FILE.rejected.ndjson
  --preset name        another system's export: ${Object.keys(presets).join(', ')}
  --map a=b,c=d        where the fields are: email=mail,passwordHash=secret.hash
  --id keep|new        whether accounts keep their ids, which must be UUIDs, or get new ones [by the preset; keep]. Pairs of
                       old and new ids go to FILE.ids.ndjson
  --hash form          how digests were made that do not say it, in hexadecimal or base64: pbkdf2-sha256:ROUNDS (or sha1, sha512),
                       scrypt:N:R:P, argon2id:KIB:PASSES:LANES, symfony
  --salt-column name   where the salt of such digests is; name:hex or name:base64 if it is not used as the text that it is [salt]
  --made-of steps      what was hashed of a password, comma-separated: md5, sha1, sha256, sha384, sha512, each also with -base64;
                       pepper:NAME (behind it), hmac-sha256:NAME and the like, by PASSWORD_PEPPERS; html, slashes, trim, lower, nfc
  --without-hash reject|reset
                       whether accounts without a hash come in: they begin with a reset mail, and the report counts them [reject]
  --weak name          what plain hexadecimal digests are that do not say it (md5, sha1, sha256, sha384, sha512). Weak digests of every
                       format are hashed with argon2id, and stored inside it
  --salt before|after|key
                       where the salt of plain digests is, or that it is the key of an HMAC [before]
  --worker-memory MIB  the memory of a worker, as the chart's worker.memory [256]. Accounts whose hash needs more could not log in, and
                       are rejected
  --role role          of an operator
  --help               prints this

From the environment:

  DATABASE_URL         the database [the database of the running pnpm start]
  REDIS_URL, SPILLWAY_SEAL_KEYS, QUEUE_PREFIX
                       of the workers, who hash weak digests [a process beside this one hashes them]; the keys also tell which
                       accounts were deleted
  PASSWORD_PEPPERS     name:base64, comma-separated, for --made-of: as the workers have them
  FIREBASE_SIGNER_KEY, FIREBASE_SALT_SEPARATOR
                       for --preset firebase: as the workers have them, who verify by them. They are stored in no account
  FIREBASE_MEM_COST, FIREBASE_ROUNDS
                       the project's mem_cost and rounds [14, 8]
`

const options = {
  'dry-run': { type: 'boolean' },
  preset: { type: 'string' },
  map: { type: 'string' },
  id: { type: 'string' },
  hash: { type: 'string' },
  'salt-column': { type: 'string' },
  'made-of': { type: 'string' },
  'without-hash': { type: 'string' },
  weak: { type: 'string' },
  salt: { type: 'string' },
  'worker-memory': { type: 'string', default: '256' },
  role: { type: 'string' },
} as const

export type Command = Exclude<ReturnType<typeof parseOptions>, undefined>
export type ImportCommand = Extract<Command, { name: 'import' }>

/** Undefined when help is asked for. */
export function parseOptions(args: readonly string[]) {
  const { values, positionals } = parseCommandLine('pnpm accounts', args, options, { allowPositionals: true })
  if (values.help) return undefined
  const [name, file, ...rest] = positionals
  if ((name === 'hashes' || name === 'formats') && file === undefined) return { name } as const
  if (name === 'operator') return { name, operator: file ?? '', role: values.role ?? '' } as const
  if (rest.length > 0 || file === undefined || (name !== 'import' && name !== 'export'))
    throw new UserError('Say import FILE, export FILE, hashes, formats or operator NAME: see "pnpm accounts --help".')
  if (name === 'export') return { name, file } as const
  const preset = values.preset === undefined ? ownPreset : presets[values.preset]
  if (preset === undefined)
    throw new UserError(`--preset takes one of ${Object.keys(presets).join(', ')}, not "${values.preset}".`)
  const [saltColumn, saltEncoding = 'text'] = values['salt-column']?.split(':') ?? []
  const encoding = oneOf('--salt-column', saltEncoding, saltEncodings)
  return {
    name,
    file,
    dryRun: values['dry-run'] === true,
    preset,
    fields: { ...mapped(preset.fields, values.map), ...(saltColumn === undefined ? {} : { salt: saltColumn }) },
    saltEncoding: encoding,
    /** Whether accounts keep their ids, or get new ones. */
    ids: oneOf('--id', values.id ?? preset.ids, ['keep', 'new']),
    compose: composeHash(values.hash),
    madeOf: values['made-of'],
    withoutHash: oneOf('--without-hash', values['without-hash'] ?? 'reject', ['reject', 'reset']),
    bare: values.weak === undefined ? undefined : bareDigest(values.weak, values.salt),
    workerMib: whole('--worker-memory', values['worker-memory']),
  } as const
}

function bareDigest(weak: string, salt: string | undefined): BareDigest {
  const place = oneOf('--salt', salt ?? 'before', ['before', 'after', 'key'])
  return { digest: oneOf('--weak', weak, plainDigests), place }
}

function oneOf<Word extends string>(option: string, text: string, words: readonly Word[]): Word {
  const word = words.find((known) => known === text)
  if (word === undefined) throw new UserError(`${option} takes one of ${words.join(', ')}, not "${text}".`)
  return word
}
