/** Random bytes from a pool: one call of the system for many, because each takes some microseconds whatever its length. */
import { randomFillSync } from 'node:crypto'

const POOL_BYTES = 4_096

const pool = Buffer.alloc(POOL_BYTES)
let used = POOL_BYTES

/** Bytes that nobody else is given: they are wiped from the pool. */
export function randomBytes(count: number): Buffer<ArrayBuffer> {
  if (used + count > POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  const bytes = Buffer.alloc(count)
  pool.copy(bytes, 0, used, used + count)
  pool.fill(0, used, used + count)
  used += count
  return bytes
}
