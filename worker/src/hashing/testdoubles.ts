/**
 * Test doubles of hashes, for measuring the pipeline without hashing. A worker accepts them with
 * SPILLWAY_TEST_HASHES=true, which it refuses in production. Any password except "wrong" matches.
 */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Threads } from './threads.js'

export interface TestDouble {
  recognizes(storedHash: string): boolean
  verify(password: string, storedHash: string): Promise<boolean>
}

const GATE_EVERY_MS = 5

export function testDoubles(threads: Threads): TestDouble[] {
  const double = (pattern: RegExp, work: (argument: string) => Promise<unknown>): TestDouble => ({
    recognizes: (storedHash) => pattern.test(storedHash),
    async verify(password, storedHash) {
      await work(pattern.exec(storedHash)?.[1] ?? '')
      return password !== 'wrong'
    },
  })
  return [
    // At once.
    double(/^\$spillway-token\$$/, () => threads.run(async () => undefined)),
    // After so many milliseconds, without a processor; counts as if it had used one.
    double(/^\$spillway-wait\$(\d{1,5})\$$/, (ms) => threads.pretend(() => sleep(Number(ms)))),
    // The same, while the file of this path (base64url) exists.
    double(/^\$spillway-gate\$([\w-]+)\$$/, (path) =>
      threads.pretend(async () => {
        while (existsSync(Buffer.from(path, 'base64url').toString())) await sleep(GATE_EVERY_MS)
      }),
    ),
  ]
}
