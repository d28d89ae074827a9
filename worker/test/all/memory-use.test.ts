// What hashing threads take of their memory, under load and after it. Skipped without the engine.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { startProcess } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { ADDON_FILE } from '../../src/hashing/native.ts'
import { PROGRAM_KIB } from '../../src/hashing/threads.ts'

const isBuilt = existsSync(ADDON_FILE) ? false : 'worker/engine has not been built here: that takes cargo'
const skip = process.platform === 'linux' ? isBuilt : 'the memory of a process is read where Linux shows it'

const hashing = (file: string) => JSON.stringify(new URL(`../../dist/hashing/${file}.js`, import.meta.url).href)

/** Hashes in as many threads as fit: by the policy, and stored ones of as much memory */
const program = (limitMib: number, processors: number) => `
  import { Hasher } from ${hashing('index')}
  import { hashingMemory } from ${hashing('threads')}
  import { argon2idPolicy } from ${hashing('policy')}
  const policy = argon2idPolicy({ memoryKib: 19456, time: 2, parallelism: 1 })
  const policyKib = 19456
  const memory = hashingMemory({ slots: ${processors}, policyKib, isShared: false, limitBytes: ${limitMib} * 2 ** 20 })
  const hasher = await Hasher.load(policy, { ...memory, native: true })
  const [salt, key] = ['c29tZXNhbHQ', 'A'.repeat(43)]
  const scryptCost = Math.floor(Math.log2(memory.slotKib)) - 1
  const brought = [
    \`$argon2id$v=19$m=\${memory.slotKib},t=1,p=1$\${salt}$\${key}\`,
    \`$scrypt$ln=\${scryptCost},r=8,p=1$\${salt}$\${key}\`,
    // Of a packages' doing: a salt that the engine does not take.
    \`$scrypt$ln=\${scryptCost},r=8,p=1$\${'c2FsdA'.repeat(200)}$\${key}\`,
    // Alone: all the memory, and OWASP's first choice of scrypt.
    \`$argon2id$v=19$m=\${memory.mostKib},t=1,p=1$\${salt}$\${key}\`,
    \`$scrypt$ln=17,r=8,p=1$\${salt}$\${key}\`,
  ]
  const calls = []
  for (let n = 0; n < 24 * memory.slots; n++) {
    calls.push(hasher.dummy('a password'))
    if (n % 8 === 0) calls.push(...brought.map((storedHash) => hasher.verify('a password', storedHash)))
  }
  await Promise.all(calls)
  console.log('hashed', JSON.stringify(memory))
  setInterval(() => {}, 1000)
`

/** In MiB: the most that it ever had, or what it has. */
async function resident(pid: number, field: 'VmHWM' | 'VmRSS'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1_024
}

const cases: [limitMib: number, processors: number, threads: number][] = [
  [256, 1, 1],
  [256, 8, 5],
]
for (const [limitMib, processors, threads] of cases) {
  test.skipIf(skip)(
    `${processors} processors hash within ${limitMib} MiB, and give them back after the work`,
    async (t) => {
      const child = startProcess({
        entry: '--',
        nodeArgs: ['--input-type=module', '--eval', program(limitMib, processors)],
      })
      t.onTestFinished(() => child.close())
      await until(() => child.output().includes('hashed'), { timeoutMs: 110_000, what: 'all hashes' })
      assert.match(child.output(), new RegExp(`"slots":${threads}\\b`))
      const most = await resident(child.pid, 'VmHWM')
      assert.ok(most <= limitMib, `${most} MiB of ${limitMib}`)
      // The allocator may keep what one package took.
      const shareKib = Number(/"slotKib":(\d+)/.exec(child.output())?.[1])
      const leftMib = (PROGRAM_KIB + shareKib) / 1_024
      await until(async () => (await resident(child.pid, 'VmRSS')) <= leftMib, { what: 'memory that is given back' })
    },
  )
}
