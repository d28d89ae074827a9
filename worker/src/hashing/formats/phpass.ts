/** phpass's portable hashes: `$P$` of WordPress before 6.8, `$H$` of phpBB, and Drupal 7's `$S$` with SHA-512. */
import { timingSafeEqual } from 'node:crypto'
import type { Verifier } from '../algorithm.js'
import { crypt64Digit, encodeCrypt64 } from './crypt64.js'
import type { ComputeDigest } from './digest-threads.js'

/** Drupal cuts the text off after 55 characters. */
const PATTERN = /^\$(?:([PH])|S)\$([./0-9A-Za-z])([^$\n]{8})([./0-9A-Za-z]{22}|[./0-9A-Za-z]{43})$/
const LENGTHS = { md5: 22, sha512: 43 }
const MIN_LOG_ROUNDS = 7
/** WordPress has 2^13, Drupal 2^15 or 2^16. One bad row must not stall a worker: this many take about half a second. */
const MAX_LOG_ROUNDS = 18
/** As phpass and Drupal limit it themselves: each round reads the whole password. */
const PASSWORD_MAX_BYTES = 4_096

export function phpass(compute: ComputeDigest): Verifier {
  return {
    family: 'phpass',
    engine: 'node:crypto',
    algorithm: () => 'phpass',
    recognizes: (storedHash) => read(storedHash) !== undefined,
    async verify(password, storedHash) {
      const hash = read(storedHash)
      if (hash === undefined || Buffer.byteLength(password) > PASSWORD_MAX_BYTES) return false
      const { digest, rounds, salt, encoded } = hash
      const state = await compute({ kind: 'phpass', digest, rounds, salt, password })
      return timingSafeEqual(Buffer.from(encodeCrypt64(state).slice(0, LENGTHS[digest])), Buffer.from(encoded))
    },
  }
}

function read(text: string) {
  const [, portable, logRounds = '', salt = '', encoded = ''] = PATTERN.exec(text) ?? []
  const digest = portable === undefined ? 'sha512' : 'md5'
  const log = crypt64Digit(logRounds)
  if (encoded.length !== LENGTHS[digest] || log < MIN_LOG_ROUNDS || log > MAX_LOG_ROUNDS) return undefined
  return { digest, rounds: 2 ** log, salt, encoded } as const
}
