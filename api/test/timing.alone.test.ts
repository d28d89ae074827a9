// Whether the time of an answer tells an account from none, at the cost of today's real policy.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertProblem, expect, login, newAccount, newCredentials } from './client.ts'
import { openSystem } from './system.ts'

/** So many tries of each make a quartile. */
const MIN_ROUNDS = 25
/** A machine with other guests may need more until the quartiles settle; work that is not the same never agrees. */
const MAX_ROUNDS = 150
/** Beyond this share of the other one, they differ. */
const TOLERANCE = 0.25

/** Milliseconds of the worker. */
type Tries = Record<'wrong' | 'unknown', number[]>

const system = await openSystem()
after(() => system.close())
const { process: worker } = await system.worker({ ARGON2_MEMORY_KIB: '19456', ARGON2_TIME: '2' })
const { url } = await system.gateway()

test('a wrong password and an unknown address cost the same work', async () => {
  const known = await newAccount(url)
  const wrong = { email: known.email, password: 'not the password' }
  expect(200, await login(url, known))
  const tries: Tries = { wrong: [], unknown: [] }
  // In turns, so that whatever else this machine does falls on both.
  for (let round = 1; round <= MAX_ROUNDS; round += 1) {
    for (const [kind, credentials] of [
      ['wrong', wrong],
      ['unknown', newCredentials()],
    ] as const) {
      const seen = answered().length
      assertProblem(await login(url, credentials), 401, 'invalid_credentials')
      const line = await worker.waitForLog((candidate) => answered().indexOf(candidate) >= seen)
      tries[kind].push(Number(line.serviceMs))
    }
    if (round >= MIN_ROUNDS && difference(tries) < TOLERANCE) break
  }
  const [ofWrong, ofUnknown] = [quartile(tries.wrong), quartile(tries.unknown)]
  assert.ok(ofWrong > 2, `${ofWrong} ms is no real work`)
  assert.ok(difference(tries) < TOLERANCE, `wrong: ${ofWrong} ms, unknown: ${ofUnknown} ms`)
})

const answered = () => worker.logs.filter(({ msg }) => msg === 'job answered')

/** How far the unknown address is from the wrong password, as a share of the latter. */
function difference({ wrong, unknown }: Tries): number {
  return Math.abs(quartile(unknown) / quartile(wrong) - 1)
}

/** The lower quartile: what the work takes when nothing interrupts it. */
function quartile(times: number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 4)] ?? 0
}
