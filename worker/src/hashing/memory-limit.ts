/**
 * The memory of hashing. The kernel kills a process that takes more than its limit, then every
 * worker that takes the job. So threads and hashes are as many as fit, and a stored hash or policy
 * that needs more than a thread has is refused.
 */
import { totalmem } from 'node:os'

/** The most that any hash may take, in KiB. */
export const MEMORY_LIMIT_KIB = 1_048_576
/** What a thread has at least, in KiB: OWASP's argon2id is always accepted. */
const LEAST_KIB = 19_456
/** For the program itself (KiB): it takes 90 to 110 MiB. Chart and sizing guide repeat this. */
export const PROGRAM_KIB = 128 * 1_024

interface HashingMemory {
  /** Hashing threads. */
  slots: number
  /** Memory of each (KiB): for one hash, or for several that are hashed together. */
  slotKib: number
}

interface MemoryOptions {
  /** Hashing threads that there are processors for. */
  slots: number
  /** The memory of a new hash, in KiB; 0 for bcrypt. */
  policyKib: number
  /** Whether another process has the same limit. */
  isShared: boolean
  /** Of the control group [this process's]. */
  limitBytes?: number
}

/**
 * Shares out what the limit leaves beside the program: a share for each thread, and one for all
 * that packages hash beside the native engine. There are fewer threads where each would have less
 * than the policy takes; one at least.
 */
export function hashingMemory({
  slots,
  policyKib,
  isShared,
  limitBytes = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem()),
}: MemoryOptions): HashingMemory {
  const leftKib = Math.max(0, limitBytes / 1_024 - (isShared ? 2 : 1) * PROGRAM_KIB)
  const fitting = Math.floor(leftKib / Math.max(LEAST_KIB, policyKib)) - 1
  const threads = Math.max(1, Math.min(slots, fitting))
  const shareKib = Math.floor(leftKib / (threads + 1))
  return { slots: threads, slotKib: Math.max(LEAST_KIB, Math.min(MEMORY_LIMIT_KIB, shareKib)) }
}

export function policyKib(policy: { algorithm: string; memoryKib?: number }): number {
  return policy.memoryKib ?? 0
}
