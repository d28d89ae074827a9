// PostgreSQL's clock tells the life of a link, Redis's the life of its mail: no gateway's does.
import assert from 'node:assert/strict'
import { clockOff } from '@spillway/infra/harness/clocks'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { slowAccount } from '../account.ts'
import { assertProblem, expect, newCredentials, respondAsync } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { shareSystem, whileFrozen } from '../system.ts'

const mails = await startMailServer()
const system = await shareSystem()
const HOUR_S = 3_600
const lives = { MAIL_CONFIRM_TTL_S: String(2 * HOUR_S), MAIL_RESET_TTL_S: String(HOUR_S) }

for (const [where, hours] of Object.entries({ ahead: 5, behind: -5 })) {
  test(`a gateway whose clock is five hours ${where} gives links that are good for their time and no longer`, async () => {
    const { api } = await system.gatewayProcess({ ...mails.env, ...lives, ...clockOff(hours * HOUR_S * 1_000) })
    const account = await api.newAccount()
    const confirmation = await mails.next(account.email, /Confirm/)
    expect(204, await api.forgotten(account.email))
    await mails.next(account.email, /Choose a new password/)
    const left = await system.database.$queryRaw<{ purpose: string; seconds: number }[]>`
      SELECT purpose, extract(epoch FROM expires_at - now())::float8 AS seconds FROM mail_tokens WHERE email = ${account.email}`
    const secondsOf = (of: string) => left.find(({ purpose }) => purpose === of)?.seconds ?? Number.NaN
    for (const [purpose, most] of Object.entries({ confirm: 2 * HOUR_S, reset: HOUR_S }))
      assert.ok(secondsOf(purpose) > most - 300 && secondsOf(purpose) <= most + 1, `${purpose}: ${secondsOf(purpose)}`)
    expect(204, await api.confirmEmail(confirmation.token))
  })
}

// Redis's clock alone does not decide for how long a ticket is good. That time passes and Redis's
// clock is then turned back by it is, to a gateway, the same as a wall clock of its own that is
// ahead: so nothing but that is shifted. A ticket lives here for 60 s, and 90 s more where clocks
// disagree.

const { warmWorker: worker } = system
const aMinute = { TICKET_TTL_MS: '60000' }
const { api } = await system.gateway(aMinute)
const ahead = (seconds: number) => system.gatewayProcess({ ...clockOff(seconds * 1_000), ...aMinute })
/** Within that and beyond it. */
const [within, later] = await Promise.all([ahead(110), ahead(170)])

/** A ticket of a right password whose result has come. */
async function earned(): Promise<{ ticket: string; id: string }> {
  const { ticket } = expect(202, await api.login(await slowAccount(system.database, 1), respondAsync))
  const [id = ''] = ticket.split('.')
  await until(() => system.redis.exists(`${system.namespace.queuePrefix}:result:${id}`))
  return { ticket, id }
}

test("a ticket is good at gateways whose clocks are a minute apart, and no session opens long after its time by a gateway's own", async () => {
  expect(200, await within.api.redeem((await earned()).ticket))
  const { ticket, id } = await earned()
  assertProblem(await later.api.redeem(ticket), 410, 'ticket_expired')
  assert.equal(await system.database.session.count({ where: { id } }), 0)
  expect(200, await api.redeem(ticket))
})

test('a ticket that is given anew while the answer is not there lives no longer than the first', async () => {
  await whileFrozen(worker, async () => {
    const first = expect(202, await api.register(newCredentials(), respondAsync))
    const second = expect(202, await within.api.redeem(first.ticket, respondAsync))
    assertProblem(await later.api.redeem(second.ticket, respondAsync), 410, 'ticket_expired')
  })
})
