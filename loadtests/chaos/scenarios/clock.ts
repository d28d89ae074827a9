// Clocks that disagree: deadlines, tickets and tokens of one machine are good at all others.
import { clockOff } from '@spillway/local/testing'
import { ask } from '@spillway/local/testing/api-client'
import { expect } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { openSystem } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'

const CREDENTIAL = 'wait-20'
const PER_SECOND = 40
const SHIFT_MS = 30_000
/** Shorter than the clocks are apart, so that a deadline by the wrong clock is over at once or never. */
const TICKET_TTL_MS = '11000'

export const clock: Scenario = {
  name: 'clock',
  promise: "The clocks of gateways are 30 s ahead and 30 s behind the workers': no login is refused for it.",
  estimatedS: 11,
  async run(stage) {
    const redis = await stage.redis()
    const system = openSystem(stage, { redisUrl: redis.url, gatewayEnv: { TICKET_TTL_MS } })
    try {
      const gateways = [SHIFT_MS, -SHIFT_MS].map((shiftMs) => system.gateway({ env: clockOff(shiftMs) }))
      await Promise.all([system.worker(), ...gateways])
      await system.knowsWorkers(1)
      await stage.accounts.seed(CREDENTIAL)
      const urls = system.gateways.map(({ url }) => url)
      const findings = await underFault({
        system,
        visitor: { urls, accounts: stage.accounts, credential: CREDENTIAL },
        perSecond: PER_SECOND,
        // The clocks are off from the beginning.
        fault: async () => undefined,
        afterMs: 3_000,
        answerLimitMs: 9_000,
      })
      const others = findings.visits.filter(({ end }) => end !== 'verdict').map(({ detail }) => detail)
      expect(
        findings,
        others.length === 0,
        `${others.length} logins ended otherwise: ${[...new Set(others)].join(', ')}`,
      )
      expect(findings, findings.ticketed === 0, `${findings.ticketed} logins got a ticket instead`)

      const issuedAtS: number[] = []
      for (const [here = '', there = ''] of [urls, urls.toReversed()]) {
        const { body, status } = await ask(here, '/v1/login', {
          body: stage.accounts.login(CREDENTIAL, 0),
          headers: { prefer: 'respond-async' },
        })
        expect(findings, status === 202, `a ticket was answered ${status}`)
        const redeemed = await ask(there, '/v1/tickets/redeem', { body: { ticket: body.ticket } })
        expect(findings, redeemed.status === 200, `a ticket of the other gateway was answered ${redeemed.status}`)
        issuedAtS.push(issuedAt(redeemed.body.accessToken))
        const me = await ask(here, '/v1/me', { headers: { authorization: `Bearer ${redeemed.body.accessToken}` } })
        expect(findings, me.status === 200, `a token of the other gateway was answered ${me.status}`)
        const refreshed = await ask(here, '/v1/token/refresh', { body: { refreshToken: redeemed.body.refreshToken } })
        expect(findings, refreshed.status === 200, `a refresh at the other gateway was answered ${refreshed.status}`)
      }
      const [one = 0, other = 0] = issuedAtS
      const apartS = Math.abs(one - other)
      findings.notes.push(`by a preload that shifts Date; the gateways' tokens are ${apartS} s apart`)
      expect(findings, Math.abs(apartS - (2 * SHIFT_MS) / 1_000) <= 5, 'the clocks are not off, so nothing was tried')
      return findings
    } finally {
      await system.close()
      await redis.close()
    }
  },
}

/** The time in a token, in epoch seconds by the clock of the gateway that signed it. */
function issuedAt(accessToken: unknown): number {
  const [, claims = ''] = String(accessToken).split('.')
  return JSON.parse(Buffer.from(claims, 'base64url').toString() || '{}').iat
}
