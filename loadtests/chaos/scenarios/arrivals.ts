// People who all come on connections of their own, faster than a gateway accepts them one by one.
import { arrivals, Visitor } from '../../load/visit.ts'
import { Findings, quartiles } from '../findings.ts'
import { onShortGateway } from '../one-gateway.ts'
import type { Scenario } from '../scenario.ts'

const PER_SECOND = 2_000
const SECONDS = 6
/** As of many proxies. A refusal takes three seconds. */
const TIMEOUT_MS = 10_000

export const newConnections: Scenario = {
  name: 'new-connections',
  promise: `Of ${PER_SECOND.toLocaleString('en')} people a second on connections of their own, each has an answer within ${TIMEOUT_MS / 1_000} s.`,
  alone: true,
  run: onShortGateway(async (system, url) => {
    const people = new Visitor({ ...system.visitor(), urls: [url], tries: 1, timeoutMs: TIMEOUT_MS })
    const visits = await arrivals({
      perSecond: PER_SECOND,
      seconds: SECONDS,
      visit: (n, dueMs) => people.visit(n, dueMs),
    })
    people.close()
    const findings = new Findings().count(visits)
    findings.notes.push(`${visits.length} people, ${quartiles(visits)}`)
    findings.expectRefusals()
    findings.expectAllDefined()
    return findings
  }),
}
