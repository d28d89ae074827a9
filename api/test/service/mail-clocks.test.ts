// The life of a link is told by PostgreSQL's clock, and the life of its mail by Redis's: a gateway's own may be wrong by hours.
import assert from 'node:assert/strict'
import { clockOff } from '@spillway/infra/rig/clocks'
import { afterAll, test } from 'vitest'
import { call, expect, newAccount } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const mails = await startMailServer()
afterAll(async () => {
  await system.close()
  await mails.stop()
})
const HOUR_S = 3_600
const lives = { MAIL_CONFIRM_TTL_S: String(2 * HOUR_S), MAIL_RESET_TTL_S: String(HOUR_S) }

for (const [where, hours] of Object.entries({ ahead: 5, behind: -5 })) {
  test(`a gateway whose clock is five hours ${where} gives links that are good for their time and no longer`, async () => {
    const { url } = await system.gatewayProcess({ ...mails.env, ...lives, ...clockOff(hours * HOUR_S * 1_000) })
    const account = await newAccount(url)
    const confirmation = await mails.next(account.email, /Confirm/)
    expect(204, await call(url, 'POST', '/v1/password/forgotten', { body: { email: account.email } }))
    await mails.next(account.email, /Choose a new password/)
    const left = await system.database.$queryRaw<{ purpose: string; seconds: number }[]>`
      SELECT purpose, extract(epoch FROM expires_at - now())::float8 AS seconds FROM mail_tokens WHERE email = ${account.email}`
    const secondsOf = (of: string) => left.find(({ purpose }) => purpose === of)?.seconds ?? Number.NaN
    for (const [purpose, most] of Object.entries({ confirm: 2 * HOUR_S, reset: HOUR_S }))
      assert.ok(secondsOf(purpose) > most - 300 && secondsOf(purpose) <= most + 1, `${purpose}: ${secondsOf(purpose)}`)
    expect(204, await call(url, 'POST', '/v1/email/confirm', { body: { token: confirmation.token } }))
  })
}
