/**
 * Test doubles of hashes, for measuring the pipeline without hashing. A worker accepts them only with SPILLWAY_TEST_HASHES=true,
 * which it refuses in production. `$spillway-token$` answers at once; `$spillway-wait$<ms>$` waits that long without using a
 * processor. Any password except "wrong" matches.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Verifier } from './algorithm.js'

const WAITING = /^\$spillway-wait\$(\d{1,5})\$$/

const token: Verifier = {
  family: 'test',
  engine: 'test',
  recognizes: (storedHash) => storedHash === '$spillway-token$',
  verify: async (password) => password !== 'wrong',
  isBelow: () => false,
}

const waiting: Verifier = {
  family: 'test',
  engine: 'test',
  recognizes: (storedHash) => WAITING.test(storedHash),
  async verify(password, storedHash) {
    await sleep(Number(WAITING.exec(storedHash)?.[1]))
    return password !== 'wrong'
  },
  isBelow: () => false,
}

export const testDoubles = [token, waiting]
