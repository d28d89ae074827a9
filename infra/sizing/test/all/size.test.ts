// `pnpm size` as a command: by what it measures on this machine, and by a given cost.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { test } from 'vitest'

/** Every cost takes a second or more of all cores: long on a busy machine. */
const TIMEOUT_MS = 400_000

const size = async (...options: string[]) => {
  const args = ['--import', 'tsx', 'infra/sizing/src/main.ts', ...options]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repositoryDir })
  return stdout
}

test("this machine's cost of each of OWASP's minimums, and the pods by it", { timeout: TIMEOUT_MS }, async () => {
  const said = await size('--logins-per-second', '9')
  assert.equal(said.match(/^(argon2id|bcrypt), .* [\d.]+ ms +\d+\/s +\d+ +\d+ +\d+ MiB$/gm)?.length, 8, said)
  assert.match(said, /^gateway\.replicas: 2$/m)
})

test('workers, gateways, PostgreSQL and Redis grow with the load, and one Redis server has a limit', async () => {
  const cost = ['--measured-ms', '8.4', '--worker-cores', '2']
  const small = await size('--logins-per-second', '100', ...cost)
  assert.match(small, /^argon2id, 19 MiB, 2 passes +8\.4 ms +100\/s +1 +5 +184 MiB$/m)
  assert.match(small, /^gateways +4 of 1 core$/m)
  assert.match(small, /^Redis +65 % of the one core/m)
  assert.doesNotMatch(small, /cells/)
  const large = await size('--logins-per-second', '1000', ...cost)
  assert.match(large, /^argon2id, 19 MiB, 2 passes +8\.4 ms +100\/s +8 +50 +184 MiB$/m)
  assert.match(large, /divide the users among cells/)
})

test('what is missing is told in one sentence', async () => {
  const said = async (...options: string[]) => await size(...options).then(assert.fail, ({ stderr }) => String(stderr))
  assert.match(await said(), /^pnpm size needs --logins-per-second: /)
})
