// Whether the time of an answer tells an account from none, at the cost of today's real policy.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { accountWithHash } from '../account.ts'
import { assertProblem, expect, newCredentials } from '../client.ts'
import { openSystem } from '../system.ts'

/** So many tries of each make a quartile. */
const MIN_ROUNDS = 25
/** A machine with other guests may need more until the quartiles settle. */
const MAX_ROUNDS = 150
/** Beyond this share of the other one, they differ. */
const TOLERANCE = 0.25

/** Milliseconds of the worker. */
type Tries = Record<'wrong' | 'unknown' | 'unsupported', number[]>

const system = await openSystem()
const worker = await system.worker({ ARGON2_MEMORY_KIB: '19456', ARGON2_TIME: '2' })
const { api } = await system.gateway()

test('a wrong password, an unknown address and an account whose hash nobody understands cost the same work', async () => {
  const known = await api.newAccount()
  const wrong = { email: known.email, password: 'not the password' }
  expect(200, await api.login(known))
  const unsupported = await accountWithHash(system.database, '$scrypt$ln=16,r=8,p=1$c2FsdA$aGFzaA')
  const tries: Tries = { wrong: [], unknown: [], unsupported: [] }
  // In turns, so that whatever else this machine does falls on both.
  for (let round = 1; round <= MAX_ROUNDS; round += 1) {
    for (const [kind, credentials] of [
      ['wrong', wrong],
      ['unknown', newCredentials()],
      ['unsupported', unsupported],
    ] as const) {
      const seen = answered().length
      assertProblem(await api.login(credentials), 401, 'invalid_credentials')
      const line = await worker.waitForLog((candidate) => answered().indexOf(candidate) >= seen)
      tries[kind].push(Number(line.serviceMs))
    }
    if (round >= MIN_ROUNDS && difference(tries) < TOLERANCE) break
  }
  const [ofWrong, ofUnknown, ofUnsupported] = [tries.wrong, tries.unknown, tries.unsupported].map(quartile)
  assert.ok(Number(ofWrong) > 2, `${ofWrong} ms is no real work`)
  assert.ok(
    difference(tries) < TOLERANCE,
    `wrong: ${ofWrong} ms, unknown: ${ofUnknown} ms, unsupported: ${ofUnsupported} ms`,
  )
})

const answered = () => worker.logs.filter(({ msg }) => msg === 'job answered')

/** How far the others are from the wrong password at most, as a share of the latter. */
function difference({ wrong, ...others }: Tries): number {
  return Math.max(...Object.values(others).map((times) => Math.abs(quartile(times) / quartile(wrong) - 1)))
}

/** The lower quartile: what the work takes when nothing interrupts it. */
function quartile(times: number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 4)] ?? 0
}
