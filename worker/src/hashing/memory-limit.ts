/**
 * The memory that one hash may take. The kernel kills a process that takes more than its limit, and after it every worker that takes the
 * job: a stored hash or a policy that asks for too much is refused before.
 */
import { totalmem } from 'node:os'

/** The most that any hash may take, in KiB. */
export const MEMORY_LIMIT_KIB = 1_048_576
/** The lowest limit, in KiB: OWASP's argon2id is always accepted. */
const LEAST_KIB = 19_456
/** For the program itself and the memory that the engine keeps, in KiB. */
const RESERVED_KIB = 128 * 1_024
/** The same with the process that started this one, which shares the limit. */
const RESERVED_FOR_TWO_KIB = 256 * 1_024

export interface MemoryLimitOptions {
  /** Hashes at a time. */
  slots: number
  /** Whether another process has the same limit. */
  isShared: boolean
  /** Of the control group [this process's]. */
  limitBytes?: number
}

export function memoryLimitKib({
  slots,
  isShared,
  limitBytes = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem()),
}: MemoryLimitOptions): number {
  const forHashesKib = limitBytes / 1_024 - (isShared ? RESERVED_FOR_TWO_KIB : RESERVED_KIB)
  return Math.max(LEAST_KIB, Math.min(MEMORY_LIMIT_KIB, Math.floor(forHashesKib / slots)))
}
