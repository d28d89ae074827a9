// Workers join in a spike, as an autoscaler adds them: those who wait get their answer sooner.
import { setTimeout as sleep } from 'node:timers/promises'
import { redeemUntilAnswered, respondAsync } from '@spillway/infra/rig/api-client'
import { startLoop } from '@spillway/infra/rig/open-loop'
import { type EtaErrors, etaErrors, type ToldEta } from '@spillway/infra/rig/quantile'
import { startTraffic } from '../../load/visit.ts'
import { Findings, tookAt } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { onOwnRedis, type System } from '../stage/stage.ts'

/** Two slots of 200 ms do ten logins a second; the worker that joins does seventy. */
const size = {
  credential: 'wait-200',
  gateways: 2,
  workers: 1,
  workerEnv: { WORKER_CONCURRENCY: '2' },
} as const
const JOINING = { WORKER_CONCURRENCY: '14' }

/** Of the spike, which goes on when the other worker joins. */
const PER_SECOND = 30
const JOINS_AFTER_MS = 10_000
const GOES_ON_FOR_MS = 8_000
/** Of the time that the answer took. */
const ETA_ERROR_LIMIT = 0.35
/** How often one is told anew to those who watch theirs, and how many begin to in a second. */
const ETA_POLL_MS = 250
const WATCHED_PER_SECOND = 2

export const workersJoining: Scenario = {
  name: 'workers-joining',
  promise: 'Workers join in a spike: all that wait are answered, and from then on tickets say when.',
  run: onOwnRedis(size, async (system) => {
    const traffic = startTraffic(system.visitor(), PER_SECOND)
    const told: ToldEta[] = []
    let watching = 0
    const watches = startLoop({
      rateAt: () => WATCHED_PER_SECOND,
      send: async () => {
        told.push(...(await watchEta(system, watching++)))
      },
    })
    await sleep(JOINS_AFTER_MS)
    await system.worker({ env: JOINING })
    await system.knowsWorkers(2)
    const joinedAtMs = performance.now()
    await sleep(GOES_ON_FOR_MS)
    const [visits] = await Promise.all([traffic.stop(), watches.stop()])

    const findings = new Findings().count(visits)
    const waiting = visits.filter(({ dueMs, tookMs }) => dueMs < joinedAtMs && dueMs + tookMs > joinedAtMs)
    const lastMs = Math.max(0, ...waiting.map(({ dueMs, tookMs }) => dueMs + tookMs - joinedAtMs))
    findings.notes.push(`${waiting.length} waited when it joined, and were answered within ${seconds(lastMs)}`)
    findings.notes.push(`a login took ${seconds(tookAt(visits, 0.99))} at p99`)
    findings.expect(waiting.length > 100, 'nobody waited, so nothing was tried')
    const { before, after } = etaErrors(told, [{ beganAtMs: joinedAtMs, endedAtMs: joinedAtMs }])
    const wrong = ({ count, p90 }: EtaErrors, when: string) =>
      `${count} ETAs ${when} were wrong by ${Math.round(p90 * 100)} % at p90`
    // ETAs before it are a figure: the past that foretells arrivals is short then.
    findings.notes.push(wrong(before, 'before it joined'))
    findings.expectFigure(after.p90 <= ETA_ERROR_LIMIT, wrong(after, 'afterwards'))
    findings.expectAllSucceeded()
    return findings
  }),
}

/** Takes a ticket and asks for its ETA again and again, as one who wants to show it does. */
async function watchEta(system: System, number: number): Promise<ToldEta[]> {
  const etas: Omit<ToldEta, 'answeredAtMs'>[] = []
  const first = await system.ask(number, '/v1/login', { body: system.login(number), ...respondAsync })
  const answer = await redeemUntilAnswered(first, {
    pauseMs({ body: { eta } }) {
      if (eta !== undefined) etas.push({ atMs: performance.now(), etaMs: eta * 1_000 })
      return ETA_POLL_MS
    },
    redeem: (ticket) => system.ask(number, '/v1/tickets/redeem', { body: { ticket }, ...respondAsync }),
  })
  const answeredAtMs = performance.now()
  return answer.status === 200 ? etas.map((eta) => ({ ...eta, answeredAtMs })) : []
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
