/**
 * Proof of work (Hashcash), which needs no third party: the client finds a text so that the SHA-256 of `<challenge>.<text>` begins with
 * the required number of zero bits.
 * A challenge is `id.expiry.bits.signature`, bound to an account by its signature. Checking takes two digests and no memory; Redis
 * remembers only which were used.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Keyring } from '@spillway/queue/queue-client'
import { isSigned } from './device-token.js'

/** How long a client may take, in seconds: a slow phone needs a minute for the hardest. */
export const CHALLENGE_TTL_S = 300
/** So many bits are added at most, where the failures of an account grow: 64 times the work. */
const GROWTH_MAX_BITS = 6
/** The first bit is added after so many failures beyond the bound, each further one after twice as many. */
const GROWTH_FAILURES = 100
const ID_BYTES = 16
const ANSWER = /^(([\w-]{22})\.(\d{10})\.(\d{1,2})\.([\w-]{43}))\.[\w-]{1,64}$/

/** A challenge that was solved. It must be marked as used before it allows anything. */
export interface Solved {
  id: string
  /** Until it expires, in milliseconds. */
  leftMs: number
}

export interface ProofOfWork {
  /** `excess`: failures of the account beyond the bound. */
  issue(account: string, excess: number): { token: string; bits: number; expiresIn: number }
  /** Undefined unless the answer solves a challenge of this account that has not expired. */
  check(account: string, answer: string): Solved | undefined
}

export function createProofOfWork(
  keyring: Keyring,
  /** The clock is Redis's. */
  { bits: leastBits, nowMs }: { bits: number; nowMs(): number },
): ProofOfWork {
  const macsOf = (account: string, id: string, expiresAtS: string, bits: string) =>
    keyring.macs({ purpose: 'challenge', id: JSON.stringify([account, id, expiresAtS, bits]) })

  return {
    issue(account, excess) {
      const id = randomBytes(ID_BYTES).toString('base64url')
      const expiresAtS = String(Math.floor(nowMs() / 1_000) + CHALLENGE_TTL_S)
      const bits = leastBits + growthOf(excess)
      const signature = macsOf(account, id, expiresAtS, String(bits))[0].toString('base64url')
      return { token: `${id}.${expiresAtS}.${bits}.${signature}`, bits, expiresIn: CHALLENGE_TTL_S }
    },

    check(account, answer) {
      const [, token, id = '', expiresAtS = '', bits = '', signature = ''] = ANSWER.exec(answer) ?? []
      if (token === undefined) return undefined
      const leftMs = Number(expiresAtS) * 1_000 - nowMs()
      if (leftMs <= 0 || zeroBitsOf(answer) < Number(bits)) return undefined
      return isSigned(macsOf(account, id, expiresAtS, bits), signature) ? { id, leftMs } : undefined
    },
  }
}

function growthOf(excess: number): number {
  return Math.min(GROWTH_MAX_BITS, Math.floor(Math.log2(1 + Math.max(0, excess) / GROWTH_FAILURES)))
}

/** The zero bits at the beginning of the digest; at most 32 are counted. */
function zeroBitsOf(answer: string): number {
  return Math.clz32(createHash('sha256').update(answer).digest().readUInt32BE(0))
}
