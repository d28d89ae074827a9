// Clocks that disagree: deadlines, tickets and tokens of one machine are good at all others.
import { clockOff } from '@spillway/local/rig'
import { ask, respondAsync } from '@spillway/local/rig/api-client'
import type { Scenario } from '../scenario.ts'
import { onOwnRedis } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'

const SHIFT_MS = 30_000
/** Shorter than the clocks are apart, so that a deadline by the wrong clock is over at once or never. */
const TICKET_TTL_MS = '11000'

export const clock: Scenario = {
  name: 'clock',
  promise: "The clocks of gateways are 30 s ahead and 30 s behind the workers': no login is refused for it.",
  run: onOwnRedis({ gateways: 0, workers: 1, gatewayEnv: { TICKET_TTL_MS } }, async (system) => {
    await Promise.all([SHIFT_MS, -SHIFT_MS].map((shiftMs) => system.gateway({ env: clockOff(shiftMs) })))
    await system.knowsWorkers(1)
    // The clocks are off from the beginning: there is no other fault.
    const findings = await underFault(system, { perSecond: 40, afterMs: 3_000 })
    findings.expectAllSucceeded()
    findings.expect(findings.ticketed === 0, `${findings.ticketed} logins got a ticket instead`)

    const { urls } = system.visitor()
    const issuedAtS: number[] = []
    for (const [here = '', there = ''] of [urls, urls.toReversed()]) {
      const { body, status } = await ask(here, '/v1/login', { body: system.login(0), ...respondAsync })
      findings.expect(status === 202, `a ticket was answered ${status}`)
      const redeemed = await ask(there, '/v1/tickets/redeem', { body: { ticket: body.ticket } })
      findings.expect(redeemed.status === 200, `a ticket of the other gateway was answered ${redeemed.status}`)
      const { accessToken, refreshToken } = redeemed.body
      issuedAtS.push(issuedAt(accessToken))
      const me = await ask(here, '/v1/me', { headers: { authorization: `Bearer ${accessToken}` } })
      findings.expect(me.status === 200, `a token of the other gateway was answered ${me.status}`)
      const refreshed = await ask(here, '/v1/token/refresh', { body: { refreshToken } })
      findings.expect(refreshed.status === 200, `a refresh at the other gateway was answered ${refreshed.status}`)
    }
    const [one = 0, other = 0] = issuedAtS
    const apartS = Math.abs(one - other)
    findings.notes.push(`by a preload that shifts Date; the gateways' tokens are ${apartS} s apart`)
    findings.expect(Math.abs(apartS - (2 * SHIFT_MS) / 1_000) <= 5, 'the clocks are not off, so nothing was tried')
    return findings
  }),
}

/** The time in a token, in epoch seconds by the clock of the gateway that signed it. */
function issuedAt(accessToken: unknown): number {
  const [, claims = ''] = String(accessToken).split('.')
  return JSON.parse(Buffer.from(claims, 'base64url').toString() || '{}').iat
}
