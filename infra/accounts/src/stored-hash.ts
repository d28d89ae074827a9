// What the stored hash of a record is, or in one sentence why its owner could not log in with it.
import { parseArgon2 } from '@spillway/queue/wire/stored-hash'
import { type Excess, TIME_LIMIT_MS } from '@spillway/worker/hashing/bounds'
import { isWeak } from '@spillway/worker/hashing/formats/format'
import { type Wrapping, wrappingOf } from '@spillway/worker/hashing/formats/wrapped'
import type { Examined, Hasher } from '@spillway/worker/hashing/index'
import { MEMORY_LIMIT_KIB, PROGRAM_KIB } from '@spillway/worker/hashing/threads'

type ExaminedHash =
  | { kind: 'rests'; storedHash: string; format: string }
  | { kind: 'weak'; wrapping: Wrapping; format: string }
  | { kind: 'rejected'; reason: string }

/** No reason holds a part of the hash, except for a prefix that names its format. */
export function examineHash(text: string, hasher: Hasher): ExaminedHash {
  // Columns of fixed width pad with blanks.
  const storedHash = text.trim()
  const examined = hasher.examine(storedHash)
  if (examined.kind !== 'supported') return { kind: 'rejected', reason: reasonOf(storedHash, examined, hasher.mostKib) }
  const { reading } = examined
  const format = reading.format.name
  if (!isWeak(reading)) return { kind: 'rests', storedHash, format }
  const wrapping = wrappingOf(reading.recipes)
  if (wrapping === undefined) return { kind: 'rejected', reason: `has a ${format} whose salt is too long` }
  return { kind: 'weak', wrapping, format }
}

function reasonOf(text: string, examined: Exclude<Examined, { kind: 'supported' }>, mostKib: number): string {
  if (examined.kind === 'unknown' && parseArgon2(text) !== undefined)
    return unsupported('argon2 with less than 8 KiB for each lane, which RFC 9106 forbids and Go alone makes')
  if (examined.kind === 'unknown') return reasons.find(({ pattern }) => pattern.test(text))?.reason(text) ?? UNKNOWN
  const { reading, excess } = examined
  return `has a password hash that costs too much (${reading.format.name}): ${inWords(excess, mostKib / 1_024)}`
}

function inWords({ milliseconds = 0, memoryMib }: Excess, mostMib: number): string {
  if (memoryMib === undefined)
    return `${(milliseconds / 1_000).toFixed(1)} s of a processor, where ${TIME_LIMIT_MS / 1_000} s are the bound`
  const limitMib = MEMORY_LIMIT_KIB / 1_024
  if (memoryMib > limitMib) return `${memoryMib} MiB of memory, where ${limitMib} MiB are the bound`
  const neededMib = memoryMib + PROGRAM_KIB / 1_024
  return `${memoryMib} MiB of memory, where workers have ${Math.floor(mostMib)} MiB for a hash: they need a worker.memory of ${neededMib}Mi`
}

const UNKNOWN = 'has a password hash of no known format'

/** The first that applies says what is wrong, and what can be done. */
const reasons: { pattern: RegExp; reason: (text: string) => string }[] = [
  { pattern: /^\*[0-9A-F]{40}$/, reason: () => unsupported("MySQL's PASSWORD()") },
  { pattern: /^0x0[12]00[0-9A-F]{48,}$/i, reason: () => unsupported("SQL Server's PWDENCRYPT()") },
  {
    pattern: /^[!*]/,
    reason: () => 'has an unusable password hash (it begins with ! or *): the account had no password, or was locked',
  },
  {
    pattern: /redacted|filtered|hidden|masked|\*{3}|^x+$|…|\.\.\.$/i,
    reason: () => 'has a password hash that the export redacted: export it with its hashes',
  },
  {
    pattern: /^\{(noop|plain|cleartext|plaintext)\}/i,
    reason: (text) => `has a password in plain text (${prefixOf(text)}), which is not imported`,
  },
  { pattern: /^\$3\$|^[0-9A-F]{32}:[0-9A-F]{32}$/, reason: () => unsupported('NT hash') },
  { pattern: /^(\{CRYPT\})?\$(7|y|gy|sha1)\$/, reason: () => unsupported('crypt(3) of Unix systems') },
  { pattern: /^\$md5[,$]/, reason: () => unsupported('MD5 of Sun') },
  { pattern: /^(\{CRYPT\})?([./0-9A-Za-z]{13}|_[./0-9A-Za-z]{19})$/i, reason: () => unsupported('DES of crypt(3)') },
  { pattern: /^\$argon2(?!id?\$|d\$)/, reason: () => unsupported('argon2 of another variant') },
  ...Object.entries({ md5: 32, sha1: 40, sha256: 64, sha512: 128 }).map(([name, length]) => ({
    pattern: new RegExp(`^[0-9a-f]{${length}}$`, 'i'),
    reason: () => `has a bare digest of ${length} hexadecimal digits: say what it is, --weak ${name} for instance`,
  })),
  {
    pattern: /^\$firebase-scrypt\$/,
    reason: () => 'has a hash of Firebase that is damaged, or of another project than FIREBASE_SIGNER_KEY',
  },
  { pattern: /^\$of\$/, reason: () => 'has a password hash of no format that --made-of is for' },
  ...Object.entries({
    argon2: /^(argon2)?\$argon2/,
    bcrypt: /^(bcrypt\$|bcrypt_sha256\$|\{bcrypt\}|\{BLF-CRYPT\}|\$wp)?\$2[abxy]?\$|^\$bcrypt-sha256\$/,
    PBKDF2: /pbkdf2/i,
    scrypt: /scrypt|^s2:|^\$[0-9a-f]{5,8}\$/,
    'SHA of crypt(3)': /^(\{CRYPT\})?\$[56]\$/,
    phpass: /^U?\$[PHS]\$/,
    'digest of a directory': /^\{S?(MD5|SHA)\d*\}/,
  }).map(([name, pattern]) => ({
    pattern,
    reason: () => `has a password hash that is cut off or damaged: it begins like ${name}`,
  })),
  {
    pattern: /^\{[A-Za-z0-9@._|-]{1,40}\}/,
    reason: (text) => `has a password hash with the unknown prefix ${prefixOf(text)}`,
  },
]

function unsupported(format: string): string {
  return `has a password hash of a format that is not supported: ${format}`
}

function prefixOf(text: string): string {
  return /^\{[^}]*\}/.exec(text)?.[0] ?? ''
}
