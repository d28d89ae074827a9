/**
 * Proof of work (Hashcash), which needs no third party: the client finds a text so that the SHA-256 of `<challenge>.<text>` begins with
 * the required number of zero bits.
 * A challenge is `id.expiry.bits.signature`, bound to an account by its signature. Checking takes two digests and no memory; Redis
 * remembers only which were used.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Keyring } from '@spillway/queue/queue-client'
import { CHALLENGE_TTL_S, type Challenges, type Solved } from './challenges.js'
import { isSigned } from './device-token.js'

/** So many bits are added at most, where the failures of an account grow: 64 times the work. */
const GROWTH_MAX_BITS = 6
/** The first bit is added after so many failures beyond the bound, each further one after twice as many. */
const GROWTH_FAILURES = 100
const ID_BYTES = 16
const ANSWER = /^(([\w-]{22})\.(\d{10})\.(\d{1,2})\.([\w-]{43}))\.[\w-]{1,64}$/

export class ProofOfWork implements Challenges {
  readonly #keyring: Keyring
  readonly #leastBits: number
  readonly #nowMs: () => number

  /** @param options.nowMs Redis's clock */
  constructor(keyring: Keyring, { bits, nowMs }: { bits: number; nowMs(): number }) {
    this.#keyring = keyring
    this.#leastBits = bits
    this.#nowMs = nowMs
  }

  issue(account: string, excess: number) {
    const id = randomBytes(ID_BYTES).toString('base64url')
    const expiresAtS = String(Math.floor(this.#nowMs() / 1_000) + CHALLENGE_TTL_S)
    const bits = this.#leastBits + growthOf(excess)
    const signature = this.#macsOf(account, id, expiresAtS, String(bits))[0].toString('base64url')
    const token = `${id}.${expiresAtS}.${bits}.${signature}`
    return { kind: 'proof_of_work', token, bits, expiresIn: CHALLENGE_TTL_S } as const
  }

  check(account: string, answer: string): Solved | undefined {
    const [, token, id = '', expiresAtS = '', bits = '', signature = ''] = ANSWER.exec(answer) ?? []
    if (token === undefined) return undefined
    const leftMs = Number(expiresAtS) * 1_000 - this.#nowMs()
    if (leftMs <= 0 || zeroBitsOf(answer) < Number(bits)) return undefined
    return isSigned(this.#macsOf(account, id, expiresAtS, bits), signature) ? { id, leftMs } : undefined
  }

  #macsOf(account: string, id: string, expiresAtS: string, bits: string) {
    return this.#keyring.macs({ purpose: 'challenge', id: JSON.stringify([account, id, expiresAtS, bits]) })
  }
}

function growthOf(excess: number): number {
  return Math.min(GROWTH_MAX_BITS, Math.floor(Math.log2(1 + Math.max(0, excess) / GROWTH_FAILURES)))
}

/** The zero bits at the beginning of the digest; at most 32 are counted. */
function zeroBitsOf(answer: string): number {
  return Math.clz32(createHash('sha256').update(answer).digest().readUInt32BE(0))
}
