/** phpass's portable hashes: `$P$` of WordPress before 6.8, `$H$` of phpBB, and Drupal 7's `$S$` with SHA-512. */
import { createHash } from 'node:crypto'
import { crypt64Digit } from '../methods/crypt64.js'
import type { Format, Reading } from './format.js'
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

export const phpass: Format = {
  name: 'phpass',
  makers: 'WordPress before 6.8, phpBB 3, Drupal 7, passlib',
  read: readPhpass,
}

const DRUPAL_6 = /^U(\$S\$.*)$/

/** Accounts of Drupal 6 in Drupal 7 to 10: phpass of the MD5 in hexadecimal. */
export const drupal6: Format = {
  name: 'phpass of MD5',
  makers: 'Drupal, of accounts that came from Drupal 6',
  read(text) {
    const reading = readPhpass(DRUPAL_6.exec(text)?.[1] ?? '')
    return reading && { ...reading, textsOf: (password) => [createHash('md5').update(password).digest('hex')] }
  },
}

function readPhpass(text: string): Reading | undefined {
  const [, letter = '', logRounds = '', salt = '', encoded = ''] = PATTERN.exec(text) ?? []
  const digest = letter === 'S' ? 'sha512' : 'md5'
  const log = crypt64Digit(logRounds)
  if (encoded.length !== LENGTHS[digest] || log < MIN_LOG_ROUNDS || log > MAX_LOG_ROUNDS) return undefined
  const textsOf = texts[letter]
  return {
    recipes: [
      {
        method: 'digest',
        program: { kind: 'phpass', digest, rounds: 2 ** log, salt },
        text: encoded,
        encoding: 'crypt64',
      },
    ],
    ...(textsOf === undefined ? {} : { textsOf }),
  }
}
