/** phpass's portable hashes: `$P$` of WordPress before 6.8, `$H$` of phpBB, and Drupal 7's `$S$` with SHA-512. */
import { createHash } from 'node:crypto'
import { crypt64Digit } from '../methods/crypt64.js'
import { formatOf, type Reading } from './format.js'
import { escapedHtml, slashed } from './made-of.js'

/** Drupal cuts the text off after 55 characters. */
const PATTERN = /^\$([PHS])\$([./0-9A-Za-z])([^$\n]{8})([./0-9A-Za-z]{22}|[./0-9A-Za-z]{43})$/
const LENGTHS = { md5: 22, sha512: 43 }
const MIN_LOG_ROUNDS = 7
const MAX_LOG_ROUNDS = 30

/** What was hashed for a password that a form sent, and for one that came another way. */
const texts: Record<string, Reading['textsOf']> = {
  P: (password) => [...new Set([slashed(password), password])],
  H: (password) => [...new Set([escapedHtml(password), password])],
}

export const phpass = formatOf(
  'phpass',
  'WordPress before 6.8, phpBB 3, Drupal 7, passlib',
  PATTERN,
  ([letter, logRounds, salt, encoded]) => {
    const digest = letter === 'S' ? 'sha512' : 'md5'
    const log = crypt64Digit(logRounds)
    if (encoded.length !== LENGTHS[digest] || log < MIN_LOG_ROUNDS || log > MAX_LOG_ROUNDS) return undefined
    const program = { kind: 'phpass', digest, rounds: 2 ** log, salt } as const
    const textsOf = texts[letter]
    return {
      recipes: [{ method: 'digest', program, text: encoded, encoding: 'crypt64' }],
      ...(textsOf === undefined ? {} : { textsOf }),
    }
  },
)

/** Accounts of Drupal 6 in Drupal 7 to 10: phpass of the MD5 in hexadecimal. */
export const drupal6 = formatOf(
  'phpass of MD5',
  'Drupal, of accounts that came from Drupal 6',
  /^U(\$S\$.*)$/,
  ([inner], context) => {
    const reading = phpass.read(inner, context)
    return reading && { ...reading, textsOf: (password) => [createHash('md5').update(password).digest('hex')] }
  },
)
