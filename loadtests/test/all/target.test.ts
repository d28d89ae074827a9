// The newcomer's five minutes: `pnpm start`, `pnpm seed`, and a spike on what runs.
import assert from 'node:assert/strict'
import { ask } from '@spillway/infra/harness/api-client'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { startProcess } from '@spillway/infra/processes/node-process'
import { resolveTarget } from '@spillway/loadtests/target-spike'
import { describe, test } from 'vitest'

const START_MS = 90_000
/** In four seconds, by chance one less; more than the 300 a minute that one address is allowed. */
const SPIKE = ['--rate', '40', '--duration', '4']
/** Of one address: wherever its minute ends among them, the limit is met. */
const ONE_TOO_MANY = 602
/** So that the hashes are not what the test waits for. */
const CHEAP_ARGON2 = { ARGON2_MEMORY_KIB: '1024', ARGON2_TIME: '1' }

const run = (entry: string, args: string[], env: NodeJS.ProcessEnv = {}) =>
  startProcess({ entry, args, nodeArgs: ['--import', 'tsx'], env })

test(
  'a spike logs in the accounts of the seed, each from an address of its own, while the limits stay on',
  async (t) => {
    const dir = await scratchDir(t)
    const env = { SPILLWAY_DIR: dir, HASH_ENGINE: 'packages' }
    const start = run('infra/local/src/start/main.ts', [], { ...env, ...CHEAP_ARGON2, PORT: '0', OPS_PORT: '0' })
    t.onTestFinished(async () => {
      await start.stop().catch(() => start.close())
    })
    await start.waitForLog(({ msg }) => msg?.startsWith('  curl') === true && msg.includes('/v1/login'), START_MS)
    const [, url = ''] = /gateway +(http:\S+)/.exec(start.output()) ?? []
    const spike = (...args: string[]) => run('loadtests/src/main.ts', ['spike', '--target', url, ...SPIKE, ...args])

    const unseeded = spike()
    assert.equal((await unseeded.exited).code, 1)
    assert.match(unseeded.output(), /user-1@example\.test cannot log in: run "pnpm seed --users 10000" first/)

    const seed = run('infra/accounts/src/seed.ts', ['--users', '200'], env)
    assert.equal((await seed.exited).code, 0, seed.output())

    const spiked = spike('--users', '200')
    assert.equal((await spiked.exited).code, 0, spiked.output())
    const said = spiked.output()
    assert.doesNotMatch(said, /Warning/)
    const people = Number(/^(\d+) people came in 4 s, 40 a second:/.exec(said)?.[1])
    assert.ok(people > 120, said)
    const numbers = [...said.matchAll(/^ {2}(\S.*?) {2,}([\d,]+)/gm)].map(([, words, number]) => [
      words,
      Number(number),
    ])
    const { 'logged in at once': atOnce, 'logged in with a ticket': byTicket, ...others } = Object.fromEntries(numbers)
    assert.equal(atOnce + byTicket, people, said)
    assert.match(said, /^100\.0 % got in, the last one [\d.]+ s after the first came; 0 were sent away/m)
    assert.deepEqual([...new Set(Object.values(others))], [0], said)

    // One address meets it, one request after the other: a burst could meet the overload guard instead.
    const statuses = new Set<number>()
    for (let n = 0; n < ONE_TOO_MANY && !statuses.has(429); n++) {
      const body = { email: `user-${(n % 200) + 1}@example.test`, password: 'a passphrase of somebody' }
      statuses.add((await ask(url, '/v1/users', { body, timeoutMs: START_MS })).status)
    }
    assert.ok(statuses.has(429), `no limit was met: ${[...statuses]}`)
  },
  3 * START_MS,
)

describe('a target', () => {
  test('is this machine, by name or address, and dialled by address', async () => {
    assert.match(await resolveTarget('http://localhost:3000', false), /^http:\/\/(127\.0\.0\.1|\[::1\]):3000$/)
    assert.equal(await resolveTarget('http://127.0.0.2:3000/', false), 'http://127.0.0.2:3000')
    assert.equal(await resolveTarget('http://[::1]:3000', false), 'http://[::1]:3000')
    // As a browser's address bar reads them: still this machine.
    assert.equal(await resolveTarget('http://2130706433:3000', false), 'http://127.0.0.1:3000')
  })

  const elsewhere = ['192.0.2.1:3000', '[::ffff:192.0.2.1]']
  for (const target of elsewhere.map((host) => `http://${host}`)) {
    test(`${target} is refused unless it was said that it may be another machine`, async () => {
      await assert.rejects(resolveTarget(target, false), /is not this machine .* only with --beyond-loopback/)
      assert.equal(await resolveTarget(target, true), new URL(target).origin)
    })
  }

  const mistaken = ['127.0.0.1:3000', 'https://127.0.0.1']
  for (const target of mistaken) {
    test(`"${target}" is told in one sentence`, async () => {
      await assert.rejects(resolveTarget(target, false), /--target takes the address of a gateway/)
    })
  }
})
