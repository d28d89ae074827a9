// A Piscina pool in this process: Piscina's own defaults, but for the two threads its users keep at least.
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import type { HashingTask } from '../hashing.ts'
import type { Hashing } from '../rival-server.ts'

export function createPool(): Hashing {
  const pool = new Piscina<HashingTask, string | boolean>({
    filename: fileURLToPath(new URL('./worker.js', import.meta.url)),
    minThreads: 2,
  })
  return {
    hash: async (password, algorithm) => String(await pool.run({ kind: 'hash', password, algorithm })),
    verify: async (password, storedHash) => (await pool.run({ kind: 'verify', password, storedHash })) === true,
  }
}
