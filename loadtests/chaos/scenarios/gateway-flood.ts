// A flood of requests that claim to continue something, with made-up tickets and refresh tokens, at a gateway that has as many logins as it
// can process. No limit of addresses or sessions is in force: it comes from everywhere.
import { isOk, watchNeighbours } from '../neighbours.ts'
import { Findings, type Scenario } from '../scenario.ts'
import { answersOf, onShortGateway, rush, rushLogins } from '../short-gateway.ts'

const LOGINS = { perSecond: 800, connections: 800, durationS: 12, settlingS: 3 }
const FLOODS = [
  { path: '/v1/tickets/redeem', body: { ticket: 'made up' } },
  { path: '/v1/token/refresh', body: { refreshToken: 'made up' } },
]
const FLOOD = { connections: 500, durationS: LOGINS.durationS + 1, settlingS: 0 }
/**
 * Of the logins without a flood. Twelve measurements gave 0.33 to 1, the lower ones with refresh tokens, each of which was looked up in
 * PostgreSQL before they were tagged; before promised requests were limited in an overload, redemptions left 0.04.
 */
const LOGINS_SHARE = 0.3

export const gatewayFlood: Scenario = {
  name: 'gateway-flood',
  promise: 'Whoever floods a gateway with made-up tickets or tokens leaves logins their share.',
  alone: true,
  run: onShortGateway(async (_, url, stage) => {
    const findings = new Findings()
    const watched = await watchNeighbours(stage.keeper, { '/healthz': () => isOk(url, '/healthz') })

    /** Verdicts a second. */
    async function login(): Promise<number> {
      const { ok } = await rushLogins(stage, { url, ...LOGINS }, findings)
      return Math.min(LOGINS.perSecond, ok / (LOGINS.durationS - LOGINS.settlingS))
    }

    const alone = await login()
    findings.notes.push(`without a flood: ${alone.toFixed(0)} logins/s`)
    for (const sends of FLOODS) {
      const [flood, beside] = await Promise.all([rush(stage, { url, sends, ...FLOOD }), login()])
      const answers = answersOf(flood.statuses)
      const rate = `${beside.toFixed(0)} logins/s beside ${(answers / FLOOD.durationS).toFixed(0)}/s to ${sends.path}`
      findings.notes.push(rate)
      findings.expect(answers >= FLOOD.connections, `${sends.path} was asked ${answers} times: that is no flood`)
      findings.expect(beside >= LOGINS_SHARE * alone, `${rate}, where ${alone.toFixed(0)} are possible`)
    }
    const neighbours = await watched()
    neighbours.report(findings)
    findings.expect(alone > 0, 'without a flood nobody logged in')
    findings.expect(findings.refused > 0, 'nothing was refused, so nothing was tried')
    findings.expect(findings.failed === 0, `${findings.failed} logins got no verdict, ticket or refusal`)
    return findings
  }),
}
