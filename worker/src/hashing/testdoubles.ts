/**
 * Test doubles of hashes, for measuring the pipeline without hashing. A worker accepts them only with SPILLWAY_TEST_HASHES=true,
 * which it refuses in production. `$spillway-token$` answers at once; `$spillway-wait$<ms>$` waits that long without using a
 * processor. Any password except "wrong" matches.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Verifier } from './algorithm.js'
import type { Threads } from './threads.js'

const WAITING = /^\$spillway-wait\$(\d{1,5})\$$/

const token = (threads: Threads): Verifier => ({
  family: 'test',
  engine: 'test',
  recognizes: (storedHash) => storedHash === '$spillway-token$',
  verify: (password) => threads.run(async () => password !== 'wrong'),
  algorithm: () => 'other',
})

const waiting = (threads: Threads): Verifier => ({
  family: 'test',
  engine: 'test',
  recognizes: (storedHash) => WAITING.test(storedHash),
  async verify(password, storedHash) {
    await threads.run(() => sleep(Number(WAITING.exec(storedHash)?.[1])))
    return password !== 'wrong'
  },
  algorithm: () => 'other',
})

export const testDoubles = (threads: Threads): Verifier[] => [token(threads), waiting(threads)]
