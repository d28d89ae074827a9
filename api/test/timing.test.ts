// Whether the time of an answer tells an account from none, at the cost of today's real policy.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertProblem, expect, login, newAccount, newCredentials } from './client.ts'
import { openSystem } from './system.ts'

const ROUNDS = 25

const system = await openSystem()
after(() => system.close())
const { process: worker } = await system.worker({ ARGON2_MEMORY_KIB: '19456', ARGON2_TIME: '2' })
const { url } = await system.gateway()

test('a wrong password and an unknown address cost the same work', async () => {
  const known = await newAccount(url)
  const wrong = { email: known.email, password: 'not the password' }
  expect(200, await login(url, known))
  const tries: Record<'wrong' | 'unknown', string[]> = { wrong: [], unknown: [] }
  // In turns, so that whatever else this machine does falls on both.
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [kind, credentials] of [
      ['wrong', wrong],
      ['unknown', newCredentials()],
    ] as const) {
      const seen = answered().length
      assertProblem(await login(url, credentials), 401, 'invalid_credentials')
      const line = await worker.waitForLog((candidate) => answered().indexOf(candidate) >= seen)
      tries[kind].push(String(line.serviceMs))
    }
  }
  const [ofWrong, ofUnknown] = [quartile(tries.wrong), quartile(tries.unknown)]
  assert.ok(ofWrong > 2, `${ofWrong} ms is no real work`)
  assert.ok(Math.abs(ofUnknown / ofWrong - 1) < 0.25, `wrong: ${ofWrong} ms, unknown: ${ofUnknown} ms`)
})

const answered = () => worker.logs.filter(({ msg }) => msg === 'job answered')

/** The lower quartile: what the work takes when nothing interrupts it. */
function quartile(times: string[]): number {
  const sorted = times.map(Number).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 4)] ?? 0
}
