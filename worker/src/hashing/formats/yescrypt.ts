/** crypt(3)'s `$y$`, the default of Debian, Fedora and Ubuntu since 2021: yescrypt with libxcrypt's flags (`j`), one lane and no ROM. */
import { timingSafeEqual } from 'node:crypto'
import type { Verifier } from '../algorithm.js'
import { crypt64Digit, decodeCrypt64, encodeCrypt64 } from './crypt64.js'
import type { ComputeDigest } from './digest-threads.js'

/** N and r are a character each: their logarithm and number less one. What follows them in other hashes is not supported. */
const PATTERN = /^\$y\$j([./0-9A-Z])([./0-9A-Z])\$([./0-9A-Za-z]{2,86})\$([./0-9A-Za-z]{43})$/
/** Debian has 4,096 × 32. One bad row must not stall a worker: this many, of 32 MiB, take about half a second. */
const WORK_LIMIT = 8_192 * 32

export function yescrypt(compute: ComputeDigest, memoryLimitBytes: number): Verifier {
  const read = (text: string) => {
    const hash = parse(text)
    return hash && 128 * hash.cost * hash.blockSize <= memoryLimitBytes ? hash : undefined
  }

  return {
    family: 'yescrypt',
    engine: 'node:crypto',
    algorithm: () => 'yescrypt',
    recognizes: (storedHash) => read(storedHash) !== undefined,
    async verify(password, storedHash) {
      const hash = read(storedHash)
      if (hash === undefined) return false
      const { encoded, ...request } = hash
      const digest = await compute({ kind: 'yescrypt', ...request, password })
      return timingSafeEqual(Buffer.from(encodeCrypt64(digest)), Buffer.from(encoded))
    },
  }
}

function parse(text: string) {
  const [, logCost = '', size = '', salt = '', encoded = ''] = PATTERN.exec(text) ?? []
  const [cost, blockSize] = [2 ** (crypt64Digit(logCost) + 1), crypt64Digit(size) + 1]
  // As the reference implementation requires: more than one state for each lane, and a salt without bits to spare.
  const isPossible = cost >= 4 && blockSize >= 1 && encodeCrypt64(decodeCrypt64(salt)) === salt
  if (encoded === '' || !isPossible || cost * blockSize > WORK_LIMIT) return undefined
  return { cost, blockSize, salt, encoded }
}
