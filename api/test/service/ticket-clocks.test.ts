// Redis's clock alone does not decide for how long a ticket is good. That time passes and Redis's clock is then turned back by it is, to a
// gateway, the same as a wall clock of its own that is ahead: so nothing but that is shifted. A ticket lives here for 60 s, and 90 s
// more where clocks disagree.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { clockOff } from '@spillway/infra/rig/clocks'
import { afterAll, test } from 'vitest'
import { slowAccount } from '../account.ts'
import { assertProblem, expect, login, newCredentials, redeem, register, respondAsync } from '../client.ts'
import { shareSystem, whileFrozen } from '../system.ts'

const system = await shareSystem()
afterAll(() => system.close())
const { warmWorker: worker } = system
const aMinute = { TICKET_TTL_MS: '60000' }
const { url } = await system.gateway(aMinute)
const ahead = (seconds: number) => system.gatewayProcess({ ...clockOff(seconds * 1_000), ...aMinute })
/** Within that and beyond it. */
const [within, later] = await Promise.all([ahead(110), ahead(170)])

/** A ticket of a right password whose verdict has come. */
async function earned(): Promise<{ ticket: string; id: string }> {
  const { ticket } = expect(202, await login(url, await slowAccount(system.database, 1), respondAsync))
  const [id = ''] = ticket.split('.')
  await until(() => system.redis.exists(`${system.namespace.queuePrefix}:verdict:${id}`))
  return { ticket, id }
}

test("a ticket is good at gateways whose clocks are a minute apart, and no session opens long after its time by a gateway's own", async () => {
  expect(200, await redeem(within.url, (await earned()).ticket))
  const { ticket, id } = await earned()
  assertProblem(await redeem(later.url, ticket), 410, 'ticket_expired')
  assert.equal(await system.database.session.count({ where: { id } }), 0)
  expect(200, await redeem(url, ticket))
})

test('a ticket that is given anew while the answer is not there lives no longer than the first', async () => {
  await whileFrozen(worker, async () => {
    const first = expect(202, await register(url, newCredentials(), respondAsync))
    const second = expect(202, await redeem(within.url, first.ticket, respondAsync))
    assertProblem(await redeem(later.url, second.ticket, respondAsync), 410, 'ticket_expired')
  })
})
