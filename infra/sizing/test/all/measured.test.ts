// Costs that are measured on this machine: of its hashes, of a proposal, and of the sizes by it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { test } from 'vitest'

const MIB = 1_024

/** Every cost takes seconds of all cores: long on a busy machine. */
const TIMEOUT_MS = 400_000

const size = (options: string) =>
  promisify(execFile)('npx', ['--yes', 'pnpm', '--silent', 'size', '--calibrate', ...options.split(' ')])

test('this machine: a proposal at or above the minimum, as settings, what it costs, and the sizes by it', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { stdout } = await size('--target 60ms --memory 256Mi --logins-per-second 9')
  const [, memoryKib = 0, time = 0] =
    /^HASH_ALGORITHM=argon2id\nARGON2_MEMORY_KIB=(\d+)\nARGON2_TIME=(\d+)\nARGON2_PARALLELISM=1$/m.exec(stdout) ?? []
  const least = [47_104, 19_456, 12_288, 9_216, 7_168]
  const leastKib = least[Math.min(Number(time), least.length) - 1]
  assert.ok(leastKib !== undefined && Number(memoryKib) >= leastKib, stdout)
  assert.ok(Number(memoryKib) <= 128 * MIB, stdout)
  assert.match(stdout, /^a worker +[\d.]+ logins a second \(1 core\)$/m)
  assert.equal(stdout.match(/^(argon2id|bcrypt), .* [\d.]+ +\d+ MiB$/gm)?.length, least.length + 3)
  assert.match(stdout, /^For the most logins, take argon2id, \d+ MiB, /m)
  const [, fullMs] = /, ([\d.]+) ms of a core with all cores busy$/m.exec(stdout) ?? []
  const [, hashMs] = /^9 logins a second, ([\d.]+) ms a hash/m.exec(stdout) ?? []
  assert.ok(fullMs !== undefined && fullMs === hashMs, stdout)
})
