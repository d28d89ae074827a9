/** crypt(3) of Unix systems, and phpass. DES and Sun's MD5 are not supported. */
import { createHash } from 'node:crypto'
import { crypt64Digit, type DigestProgram } from '../methods/digest-programs.js'
import type { DigestRecipe } from '../methods/recipe.js'
import { escapedHtml, slashed } from './envelopes.js'
import { type Format, formatOf, type Reading, weak } from './format.js'

const SHA_CRYPT_ROUNDS = { byDefault: 5_000, least: 1_000 }

const PHPASS_LENGTHS = { md5: 22, sha512: 43 }
const PHPASS_LOG_ROUNDS = { least: 7, most: 30 }
/** What was hashed for a password that a form sent, and for one that came another way. */
const phpassTexts: Record<string, Reading['textsOf']> = {
  P: (password) => [...new Set([slashed(password), password])],
  H: (password) => [...new Set([escapedHtml(password), password])],
}

/** `$P$` of WordPress before 6.8, `$H$` of phpBB, and Drupal 7's `$S$` with SHA-512. */
const phpass = formatOf(
  'phpass',
  'WordPress before 6.8, phpBB 3, Drupal 7, passlib',
  // Drupal cuts the text off after 55 characters.
  /^\$([PHS])\$([./0-9A-Za-z])([^$\n]{8})([./0-9A-Za-z]{22}|[./0-9A-Za-z]{43})$/,
  ([letter, logRounds, salt, encoded]) => {
    const digest = letter === 'S' ? 'sha512' : 'md5'
    const log = crypt64Digit(logRounds)
    if (encoded.length !== PHPASS_LENGTHS[digest] || log < PHPASS_LOG_ROUNDS.least || log > PHPASS_LOG_ROUNDS.most)
      return undefined
    const program = { kind: 'phpass', digest, rounds: 2 ** log, salt } as const
    const textsOf = phpassTexts[letter]
    return {
      recipes: [{ method: 'digest', program, text: encoded, encoding: 'crypt64' }],
      ...(textsOf === undefined ? {} : { textsOf }),
    }
  },
)

export const cryptFormats: readonly Format[] = [
  formatOf(
    'crypt(3) SHA',
    'Linux, PHP, passlib, Ansible, Dovecot',
    /^\$(5|6)\$(?:rounds=(\d{4,9})\$)?([^$:\n]{0,16})\$([./0-9A-Za-z]{43}|[./0-9A-Za-z]{86})$/,
    ([version, count, salt, encoded]) => {
      const [digest, length] = version === '5' ? (['sha256', 43] as const) : (['sha512', 86] as const)
      const rounds = Number(count || SHA_CRYPT_ROUNDS.byDefault)
      if (encoded.length !== length || rounds < SHA_CRYPT_ROUNDS.least) return undefined
      return ofProgram({ kind: 'sha-crypt', digest, rounds, salt }, encoded)
    },
  ),
  weak(
    formatOf(
      'crypt(3) MD5',
      'older Unix systems, .htpasswd',
      /^(\$1\$|\$apr1\$)([^$:\n]{0,8})\$([./0-9A-Za-z]{22})$/,
      ([magic, salt, encoded]) =>
        ofProgram({ kind: 'md5-crypt', magic: magic === '$1$' ? '$1$' : '$apr1$', salt }, encoded),
    ),
  ),
  phpass,
  // Accounts of Drupal 6 in Drupal 7 to 10: phpass of the MD5 in hexadecimal.
  formatOf('phpass of MD5', 'Drupal, of accounts that came from Drupal 6', /^U(\$S\$.*)$/, ([inner], context) => {
    const reading = phpass.read(inner, context)
    return reading && { ...reading, textsOf: (password) => [createHash('md5').update(password).digest('hex')] }
  }),
]

function ofProgram(program: DigestProgram, text: string): DigestRecipe {
  return { method: 'digest', program, text, encoding: 'crypt64' }
}
