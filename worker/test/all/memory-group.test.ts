// A worker in a container with limited memory, beyond which the kernel would kill it.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startProcess } from '@spillway/infra/processes/node-process'
import { test } from 'vitest'
import { hashingMemory } from '../../src/hashing/threads.ts'
import { answerOf, readyClient, workerEnvironment } from '../parts.ts'
import { spaceFor } from '../space.ts'
import { entry } from '../worker-process.ts'

// A control group for a process, as a container's. Only root may make one, not everywhere.

const root = '/sys/fs/cgroup'
const isFirstVersion = existsSync(join(root, 'memory'))

interface MemoryGroup {
  add(pid: number): void
  /** After the end of all processes in it. */
  close(): void
}

/** Undefined where none can be made. */
function createMemoryGroup(name: string, limitBytes: number): MemoryGroup | undefined {
  const dir = join(root, isFirstVersion ? 'memory' : '', name)
  try {
    mkdirSync(dir)
  } catch {
    return undefined
  }
  try {
    writeFileSync(join(dir, isFirstVersion ? 'memory.limit_in_bytes' : 'memory.max'), String(limitBytes))
  } catch {
    rmdirSync(dir)
    return undefined
  }
  return { add: (pid) => writeFileSync(join(dir, 'cgroup.procs'), String(pid)), close: () => rmdirSync(dir) }
}

/** OWASP's argon2id. */
const POLICY_KIB = 19_456

test.for([
  [128, 1],
  [166, 1],
  [256, 1],
  [256, 8],
  [512, 8],
] as const)(
  'within %i MiB a worker of %i slots hashes what its limit allows',
  { timeout: 300_000 },
  async ([limitMib, slots], t) => {
    const limitBytes = limitMib * 2 ** 20
    const space = spaceFor(t)
    const group = createMemoryGroup(`spillway-test-${randomBytes(6).toString('hex')}`, limitBytes)
    if (group === undefined) return t.skip('no control group can be made here')
    t.onTestFinished(() => group.close())
    const worker = startProcess({
      entry,
      env: {
        ...workerEnvironment(space),
        ...{ ARGON2_MEMORY_KIB: String(POLICY_KIB), ARGON2_TIME: '2', WORKER_CONCURRENCY: String(slots) },
      },
    })
    t.onTestFinished(() => worker.close())
    // It reads its limit later, when it starts to take jobs.
    group.add(worker.pid)
    const fitting = hashingMemory({ slots, policyKib: POLICY_KIB, isShared: false, limitBytes })
    assert.equal((await worker.waitForLog(({ msg }) => msg === 'worker ready')).concurrency, fitting.slots)

    const client = await readyClient(space)
    const [salt, key] = ['c29tZXNhbHQ', 'A'.repeat(43)]
    // As much memory as one hash may take, and one that packages make: its salt is too long.
    const scrypt = `$scrypt$ln=${Math.floor(Math.log2(fitting.slotKib)) - 1},r=8,p=1`
    const brought = [
      `$argon2id$v=19$m=${fitting.slotKib},t=1,p=1$${salt}$${key}`,
      `${scrypt}$${salt}$${key}`,
      `${scrypt}$${'c2FsdA'.repeat(200)}$${key}`,
    ]
    const pending = []
    for (let n = 0; n < 24 * fitting.slots; n++) {
      pending.push(client.submit('hash', { password: 'a password' }))
      if (n % 8 === 0)
        pending.push(...brought.map((storedHash) => client.submit('verify', { password: 'a password', storedHash })))
    }
    const verdicts = await Promise.all(pending.map(async (job) => (await answerOf(await job))?.kind))
    assert.equal(worker.exit, undefined, 'the kernel killed it')
    assert.deepEqual(new Set(verdicts), new Set(['hashed', 'mismatch']))
  },
)
