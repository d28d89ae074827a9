/**
 * Test doubles of hashes, for measuring the pipeline without hashing. A worker accepts them only with SPILLWAY_TEST_HASHES=true,
 * which it refuses in production. `$spillway-token$` answers at once; `$spillway-wait$<ms>$` waits that long without using a
 * processor, and counts as if it had used one. Any password except "wrong" matches.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Threads } from './threads.js'

export interface TestDouble {
  recognizes(storedHash: string): boolean
  verify(password: string, storedHash: string): Promise<boolean>
}

const WAITING = /^\$spillway-wait\$(\d{1,5})\$$/

const token = (threads: Threads): TestDouble => ({
  recognizes: (storedHash) => storedHash === '$spillway-token$',
  verify: (password) => threads.run(async () => password !== 'wrong'),
})

const waiting = (threads: Threads): TestDouble => ({
  recognizes: (storedHash) => WAITING.test(storedHash),
  async verify(password, storedHash) {
    await threads.pretend(() => sleep(Number(WAITING.exec(storedHash)?.[1])))
    return password !== 'wrong'
  },
})

export const testDoubles = (threads: Threads): TestDouble[] => [token(threads), waiting(threads)]
