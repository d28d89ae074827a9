/**
 * Test doubles of hashes, for measuring the pipeline without hashing. A worker accepts them only
 * with SPILLWAY_TEST_HASHES=true, which it refuses in production. `$spillway-token$` answers at
 * once. `$spillway-wait$<ms>$` waits so long without a processor, and counts as if it had used one.
 * `$spillway-gate$<path>$` does so while the file of this path (base64url) exists. Any password
 * except "wrong" matches.
 */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Threads } from './threads.js'

export interface TestDouble {
  recognizes(storedHash: string): boolean
  verify(password: string, storedHash: string): Promise<boolean>
}

const WAITING = /^\$spillway-wait\$(\d{1,5})\$$/
const GATE = /^\$spillway-gate\$([\w-]+)\$$/
/** The interval between two checks of the file, in milliseconds. */
const GATE_EVERY_MS = 5

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

const gate = (threads: Threads): TestDouble => ({
  recognizes: (storedHash) => GATE.test(storedHash),
  async verify(password, storedHash) {
    const file = Buffer.from(GATE.exec(storedHash)?.[1] ?? '', 'base64url').toString()
    await threads.pretend(async () => {
      while (existsSync(file)) await sleep(GATE_EVERY_MS)
    })
    return password !== 'wrong'
  },
})

export const testDoubles = (threads: Threads): TestDouble[] => [token(threads), waiting(threads), gate(threads)]
