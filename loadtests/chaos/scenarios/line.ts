// A spike of real hashes: everyone gets in, within the time of the work; and of a longer one, of which half the people go away, nothing is
// hashed for those who left.
import { setMaxListeners } from 'node:events'
import { readMetric } from '@spillway/local/rig/api-client'
import { openLoop } from '@spillway/local/rig/open-loop'
import { quantile } from '@spillway/local/rig/quantile'
import type { Visit } from '../../load/visit.ts'
import { type DearLine, onDearLine } from '../dear-line.ts'
import { isOk, watchNeighbours } from '../neighbours.ts'
import { Findings, type Scenario } from '../scenario.ts'

interface Spike {
  /** Of the capacity. */
  times: number
  seconds: number
}

const SPIKES: readonly Spike[] = [
  { times: 5, seconds: 10 },
  { times: 10, seconds: 5 },
]
/** Of the work, divided by the capacity. */
const LAST_SHARE = 1.25

const LEFT = { times: 20, seconds: 10 }
const LEAVE_AFTER_S = 20
const GOODPUT_SHARE = 0.8
const FOR_NOBODY_SHARE = 0.05

/** People come; resolves when the last of them is in or gone. The generator's own processor time tells whether it measured itself. */
async function come(perSecond: number, seconds: number, visit: (n: number, dueMs: number) => Promise<Visit>) {
  const visits: Visit[] = []
  const before = process.cpuUsage()
  const beganMs = performance.now()
  let number = 0
  await openLoop({
    rateAt: () => perSecond,
    durationMs: seconds * 1_000,
    async send(dueMs) {
      visits.push(await visit(number++, dueMs))
    },
  })
  const { user, system } = process.cpuUsage(before)
  const tookS = (performance.now() - beganMs) / 1_000
  return { visits, tookS, generator: (user + system) / 1e6 / tookS }
}

/** Resolves with the capacity after it: machines change their speed, so that what counts is the mean of both ends. */
async function spike(line: DearLine, findings: Findings, before: number, { times, seconds }: Spike): Promise<number> {
  const name = `${times} times capacity for ${seconds} s`
  const people = line.people()
  const { visits, tookS, generator } = await come(before * times, seconds, people.visit)
  people.close()
  await line.expectCalm(findings, name)
  const after = await line.capacity()
  const capacity = (before + after) / 2
  findings.count(visits)
  const sentAway = visits.filter((visit) => visit.sentAway.length > 0 || visit.end === 'refused').length
  const share = tookS / (visits.length / capacity)
  const last = `the last one in after ${tookS.toFixed(1)} s, ${share.toFixed(2)} of the time of the work`
  const tookMs = visits.map((visit) => visit.tookMs)
  const quartiles = [0.25, 0.5, 0.75].map((part) => ((quantile(tookMs, part) ?? 0) / 1_000).toFixed(1))
  findings.notes.push(
    `${name}: ${visits.length} people at ${capacity.toFixed(1)} logins/s, ${sentAway} sent away, ${last}; quartiles ` +
      `${quartiles.join(', ')} s; the generator took ${(generator * 100).toFixed(0)} % of a core`,
  )
  const lost = visits.reduce((sum, visit) => sum + visit.ticketsLost, 0)
  findings.expect(sentAway === 0, `${name}: ${sentAway} people were sent away`)
  findings.expect(lost === 0, `${name}: ${lost} tickets came to nothing`)
  findings.expect(share <= LAST_SHARE, `${name}: ${last}`)
  return after
}

const lineSpike: Scenario = {
  name: 'line-spike',
  promise: `At 5 and 10 times capacity nobody is sent away, and the last one is in within ${LAST_SHARE} of the time of the work.`,
  alone: true,
  run: onDearLine(async (line) => {
    const findings = new Findings()
    const watched = await watchNeighbours(line.stage.keeper, { '/healthz': () => isOk(line.url, '/healthz') })
    let capacity = await line.capacity()
    for (const each of SPIKES) capacity = await spike(line, findings, capacity, each)
    const neighbours = await watched()
    neighbours.report(findings)
    findings.expectAllSucceeded()
    return findings
  }),
}

const lineLeft: Scenario = {
  name: 'line-left',
  promise: `When half of a spike of ${LEFT.times} times capacity leaves, the others get ${GOODPUT_SHARE} of the capacity; at most ${FOR_NOBODY_SHARE * 100} % of the hashes are for clients who left.`,
  alone: true,
  run: onDearLine(async (line) => {
    const { opsUrl = '' } = line.system.workers[0] ?? {}
    const hashed = () => readMetric(opsUrl, 'spillway_jobs_total', 'outcome="hashed"')
    const watched = await watchNeighbours(line.stage.keeper, { '/healthz': () => isOk(line.url, '/healthz') })
    const before = await line.capacity()
    const hashedBefore = await hashed()
    const leave = new AbortController()
    // One for each of them.
    setMaxListeners(0, leave.signal)
    const [staying, leaving] = [line.people(), line.people({ signal: leave.signal })]
    const timer = setTimeout(() => leave.abort(), LEAVE_AFTER_S * 1_000)
    const stayed: Visit[] = []
    const left: Visit[] = []
    const { visits, tookS, generator } = await come(before * LEFT.times, LEFT.seconds, async (n, dueMs) => {
      const visit = await (n % 2 === 0 ? staying : leaving).visit(n, dueMs)
      ;(n % 2 === 0 ? stayed : left).push(visit)
      return visit
    })
    clearTimeout(timer)
    for (const people of [staying, leaving]) people.close()
    const hashes = (await hashed()) - hashedBefore
    const findings = new Findings().count(stayed)
    await line.expectCalm(findings, 'it')
    const capacity = (before + (await line.capacity())) / 2
    const neighbours = await watched()

    const served = visits.filter(({ end }) => end === 'verdict').length
    const sentAway = stayed.filter((visit) => visit.sentAway.length > 0).length
    const goodput = served / tookS / capacity
    const forNobody = Math.max(0, hashes - served) / hashes
    const rate = `${goodput.toFixed(2)} of ${capacity.toFixed(1)} logins/s`
    const nobody = `of ${hashes} hashes ${(forNobody * 100).toFixed(1)} % were for nobody`
    findings.notes.push(
      `${stayed.length} stayed, ${left.length} left after ${LEAVE_AFTER_S} s, of whom ${served - findings.succeeded} were in; ${rate} ` +
        `until the last was in after ${tookS.toFixed(1)} s; ${nobody}; ${sentAway} sent away; the generator took ${(generator * 100).toFixed(0)} % of a core`,
    )
    neighbours.report(findings)
    findings.expectAllSucceeded()
    findings.expect(goodput >= GOODPUT_SHARE, `goodput was ${rate}`)
    findings.expect(forNobody <= FOR_NOBODY_SHARE, nobody)
    return findings
  }),
}

export const lineScenarios: readonly Scenario[] = [lineSpike, lineLeft]
