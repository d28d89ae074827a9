/** crypt(3)'s `$5$` and `$6$` of Unix systems: SHA-256 and SHA-512, of 5,000 rounds unless they say otherwise. */
import { timingSafeEqual } from 'node:crypto'
import type { Verifier } from '../algorithm.js'
import { encodeCrypt64 } from './crypt64.js'
import type { ComputeDigest } from './digest-threads.js'

const SHA256 = /^\$5\$(?:rounds=(\d{4,9})\$)?([^$:\n]{0,16})\$([./0-9A-Za-z]{43})$/
const SHA512 = /^\$6\$(?:rounds=(\d{4,9})\$)?([^$:\n]{0,16})\$([./0-9A-Za-z]{86})$/
const DEFAULT_ROUNDS = 5_000
const MIN_ROUNDS = 1_000
/** One bad row must not stall a worker: this many take about half a second. */
const MAX_ROUNDS = 200_000
/** Each round reads the whole password. */
const PASSWORD_MAX_BYTES = 4_096

export function shaCrypt(compute: ComputeDigest): Verifier {
  return {
    family: 'sha-crypt',
    engine: 'node:crypto',
    algorithm: () => 'sha-crypt',
    recognizes: (storedHash) => read(storedHash) !== undefined,
    async verify(password, storedHash) {
      const hash = read(storedHash)
      if (hash === undefined || Buffer.byteLength(password) > PASSWORD_MAX_BYTES) return false
      const { digest, rounds, salt, encoded } = hash
      const state = await compute({ kind: 'sha-crypt', digest, rounds, salt, password })
      const shuffled = Uint8Array.from(orders[digest], (at) => state[at] ?? 0)
      return timingSafeEqual(Buffer.from(encodeCrypt64(shuffled)), Buffer.from(encoded))
    },
  }
}

function read(text: string) {
  const digest = text.startsWith('$5$') ? 'sha256' : 'sha512'
  const [, rounds = DEFAULT_ROUNDS, salt = '', encoded] = (digest === 'sha256' ? SHA256 : SHA512).exec(text) ?? []
  if (encoded === undefined || Number(rounds) < MIN_ROUNDS || Number(rounds) > MAX_ROUNDS) return undefined
  return { digest, rounds: Number(rounds), salt, encoded } as const
}

type Group = [number, number, number]

/** The order in which the bytes of a digest are written: groups of three, each the one before turned and one on, then the rest. */
const orders = {
  sha256: [...groups([20, 10, 0], 10, ([a, b, c]) => [b + 1, c + 1, a + 1]), 30, 31],
  sha512: [...groups([42, 21, 0], 21, ([a, b, c]) => [c + 1, a + 1, b + 1]), 63],
}

function groups(first: Group, count: number, next: (group: Group) => Group): number[] {
  const order: number[] = []
  let group = first
  for (let n = 0; n < count; n++) {
    order.push(...group)
    group = next(group)
  }
  return order
}
