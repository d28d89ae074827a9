/** argon2id (RFC 9106), the algorithm of today's policy, in the PHC string format. */
import * as argon2 from 'argon2'
import type { Algorithm, Policy } from './index.js'

/** Stored hashes may ask for this much memory and no more, so that one bad row cannot take a worker down. */
const MEMORY_LIMIT_KIB = 1_048_576
const TIME_LIMIT = 64
const PARALLELISM_LIMIT = 16

/** Versions 16 and 19; salts of 8 bytes and digests of 4 at least (RFC 9106, section 3.1), in base64 without padding. */
const PHC = /^\$argon2(?:id|i|d)\$v=(?:16|19)\$m=(\d+),t=(\d+),p=(\d+)\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{6,}$/

/** argon2id at the cost of a policy. It verifies argon2i and argon2d as well; {@link Algorithm.isBelow} calls them outdated. */
export function createArgon2(policy: Policy): Algorithm {
  const options: argon2.Options & { raw: false } = {
    raw: false,
    type: argon2.argon2id,
    memoryCost: policy.memoryKib,
    timeCost: policy.time,
    parallelism: policy.parallelism,
  }
  return {
    recognizes(storedHash) {
      const cost = costOf(storedHash)
      return cost !== undefined && isPossible(cost) && isAffordable(cost)
    },
    hash: (password) => argon2.hash(password, options),
    verify: (password, storedHash) => argon2.verify(storedHash, password),
    isBelow(storedHash) {
      const cost = costOf(storedHash)
      if (cost === undefined || !storedHash.startsWith('$argon2id$')) return true
      return cost.memoryKib < policy.memoryKib || cost.time < policy.time
    },
  }
}

function costOf(storedHash: string): Policy | undefined {
  const [, memoryKib, time, parallelism] = PHC.exec(storedHash) ?? []
  if (memoryKib === undefined) return undefined
  return { memoryKib: Number(memoryKib), time: Number(time), parallelism: Number(parallelism) }
}

/** RFC 9106, section 3.1: at least one pass, one lane, and eight blocks for each lane. */
function isPossible({ memoryKib, time, parallelism }: Policy): boolean {
  return time >= 1 && parallelism >= 1 && memoryKib >= 8 * parallelism
}

function isAffordable({ memoryKib, time, parallelism }: Policy): boolean {
  return memoryKib <= MEMORY_LIMIT_KIB && time <= TIME_LIMIT && parallelism <= PARALLELISM_LIMIT
}
