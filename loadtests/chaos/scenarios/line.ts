// Spikes of real hashes. Everyone gets in within the time of the work, and nothing is hashed for
// those who left.
import { setTimeout as sleep } from 'node:timers/promises'
import { processorMs, processorTime } from '@spillway/infra/processes/processor-time'
import { quantile } from '@spillway/infra/rig/quantile'
import { DEAR_PASSES } from '../../contenders/hashing.ts'
import { arrivals, type Visit, Visitor, type VisitorOptions } from '../../load/visit.ts'
import { Findings, percent, quartiles } from '../findings.ts'
import { loginsInTurn, watchNeighbours } from '../one-gateway.ts'
import type { Scenario } from '../scenario.ts'
import { type OwnSystem, onOwnRedis, type Stage } from '../stage/stage.ts'

// Real and expensive hashes: a slot does some thirty a second. Twenty times as many are few people,
// so the other processes cost little. All share the machine's cores.

const DEAR = { WORKER_CONCURRENCY: '1', ARGON2_TIME: String(DEAR_PASSES) }
/** With hashes of the usual cost, and all cores for them, the gateway's own work counts, too. */
const USUAL = { WORKER_CONCURRENCY: '2' }

/** Held, all of them: enough that a slot never waits for a job. */
const CALLERS = 12
const SETTLING_MS = 1_000
const COUNTED_MS = 4_000
const LOGINS = 7
/** A login afterwards takes at most so many times what it took before. */
export const AS_QUICK = 2
const OVER_AFTER_MS = 2_000
/** A held request is answered after LOGIN_WAIT_MS, 8 s, and a refusal is paced for some seconds. */
const ANSWER_MS = 30_000
const PATIENCE_MS = 330_000

export interface Line {
  system: OwnSystem
  stage: Stage
  url: string
  /** Logins a second of a few who are all held, and come again at once. */
  capacity(): Promise<number>
  /** People who come back as pages do, until they are in. */
  people(changes?: Partial<VisitorOptions>): Visitor
  /**
   * Expects the next login, two seconds later, to be as quick as at first. Notes the hashes
   * meanwhile.
   */
  expectCalm(findings: Findings, after: string): Promise<void>
}

/**
 * @param hold LOGIN_WAIT_MS of the gateway by what so many clients reach [the default]; the packages
 *   hash then, so that it stays near the default
 */
export function onLine(
  credential: 'dear' | 'argon2id',
  run: (line: Line) => Promise<Findings>,
  hold?: { clients: number; msOf(perSecond: number): number },
): Scenario['run'] {
  const workerEnv = { ...(credential === 'dear' ? DEAR : USUAL), ...(hold && { HASH_ENGINE: 'packages' }) }
  return onOwnRedis({ credential, gateways: 1, workers: 1, workerEnv }, async (system, stage) => {
    const [first] = system.gateways
    let url = first?.url ?? ''
    const people: Line['people'] = (changes) =>
      new Visitor({
        ...system.visitor(),
        urls: [url],
        tries: Number.POSITIVE_INFINITY,
        patienceMs: PATIENCE_MS,
        timeoutMs: ANSWER_MS,
        ...changes,
      })
    /** The median of some logins in turn; infinite if one gets no verdict. */
    async function usualMs(): Promise<number> {
      const tookMs = await loginsInTurn(system, LOGINS, url)
      return tookMs.every(Number.isFinite) ? (quantile(tookMs, 0.5) ?? 0) : Number.POSITIVE_INFINITY
    }
    const capacity = (clients = CALLERS) =>
      people().perSecond(clients, { settlingMs: SETTLING_MS, countedMs: COUNTED_MS })
    // Compiles what is on the way, and lets the worker see what its hashes cost.
    await capacity()
    if (hold !== undefined) {
      const env = { LOGIN_WAIT_MS: String(Math.ceil(hold.msOf(await capacity(hold.clients)))) }
      await first?.stop()
      ;({ url } = await system.gateway({ env }))
      await system.knowsWorkers(1)
      await capacity()
    }
    const idleMs = await usualMs()
    const expectCalm: Line['expectCalm'] = async (findings, after) => {
      const hashedBefore = await system.jobs()
      await sleep(OVER_AFTER_MS)
      const forNobody = (await system.jobs()) - hashedBefore
      const calmMs = await usualMs()
      findings.notes.push(
        `a login after ${after} ${calmMs.toFixed(0)} ms, before all ${idleMs.toFixed(0)}; ${forNobody} hashes in the ` +
          `${OVER_AFTER_MS / 1_000} s before it`,
      )
      const times = calmMs / idleMs
      findings.expect(times <= AS_QUICK, `a login after ${after} took ${times.toFixed(2)} of before`)
    }
    return await run({ system, stage, url, capacity, people, expectCalm })
  })
}

interface Spike {
  /** Of the capacity. */
  times: number
  seconds: number
}

const SPIKES: readonly Spike[] = [
  { times: 5, seconds: 4 },
  { times: 10, seconds: 3 },
]
/** Of the work, divided by the capacity. */
const LAST_SHARE = 1.25

const LEFT = { times: 20, seconds: 5 }
const LEAVE_AFTER_S = 10
/** Of the capacity: with thousands who wait, generator and gateway take more of the cores. */
const GOODPUT_SHARE = 0.8
const FOR_NOBODY_SHARE = 0.05

/** Of processors' time, by who used it: where the capacity goes that is not hashed with. */
function timesOf({ system: { gateways, workers, redis }, stage: { postgres } }: Line) {
  const pids = (members: readonly { pid: number }[]) => members.map(({ pid }) => pid)
  const groups: [name: string, pids: number[]][] = [
    ['worker', pids(workers)],
    ['gateway', pids(gateways)],
    ['PostgreSQL', [postgres.pid() ?? []].flat()],
    ['Redis', [redis.pid() ?? []].flat()],
    ['generator', [process.pid]],
  ]
  const read = () => groups.map(([, pids]) => pids.reduce((sum, pid) => sum + ownMs(pid), 0))
  const before = read()
  const beganMs = performance.now()
  /** As per cents of a core since then. */
  return () => {
    const [now, tookMs] = [read(), performance.now() - beganMs]
    return groups.map(([name], n) => `${name} ${percent(((now[n] ?? 0) - (before[n] ?? 0)) / tookMs)}`).join(', ')
  }
}

/** Of a process and its living children; of this one without those that it started. */
function ownMs(pid: number): number {
  return (pid === process.pid ? processorTime(pid) : processorMs([pid])) ?? 0
}

/** People come; also tells how long it took, and who used the processors. */
async function come(line: Line, perSecond: number, seconds: number, visit: Parameters<typeof arrivals>[0]['visit']) {
  const [times, beganMs] = [timesOf(line), performance.now()]
  const visits = await arrivals({ perSecond, seconds, visit })
  return { visits, tookS: (performance.now() - beganMs) / 1_000, used: `of a core: ${times()}` }
}

/**
 * Resolves with the capacity after it. The mean of both ends counts: machines change their speed.
 */
async function spike(line: Line, findings: Findings, before: number, { times, seconds }: Spike): Promise<number> {
  const name = `${times} times capacity for ${seconds} s`
  const people = line.people()
  const { visits, tookS, used } = await come(line, before * times, seconds, (n, dueMs) => people.visit(n, dueMs))
  people.close()
  await line.expectCalm(findings, name)
  const after = await line.capacity()
  const capacity = (before + after) / 2
  findings.count(visits)
  const sentAway = visits.filter((visit) => visit.sentAway.length > 0 || visit.end === 'refused').length
  const share = tookS / (visits.length / capacity)
  const last = `the last one in after ${tookS.toFixed(1)} s, ${share.toFixed(2)} of the time of the work`
  findings.notes.push(
    `${name}: ${visits.length} people at ${capacity.toFixed(1)} logins/s, ${sentAway} sent away, ${last}; ` +
      `${quartiles(visits)}; ${used}`,
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
  run: onLine('dear', async (line) => {
    const findings = new Findings()
    const neighbours = await watchNeighbours(line.stage, line.url)
    let capacity = await line.capacity()
    for (const each of SPIKES) capacity = await spike(line, findings, capacity, each)
    await neighbours.report(findings)
    findings.expectAllSucceeded()
    return findings
  }),
}

const lineLeft: Scenario = {
  name: 'line-left',
  promise: `When half of a spike of ${LEFT.times} times capacity leaves, the others get ${GOODPUT_SHARE} of the capacity; at most ${percent(FOR_NOBODY_SHARE)} of the hashes are for clients who left.`,
  alone: true,
  run: onLine('dear', async (line) => {
    const neighbours = await watchNeighbours(line.stage, line.url)
    const times = timesOf(line)
    const before = await line.capacity()
    const usedBefore = times()
    const hashedBefore = await line.system.jobs()
    const leave = new AbortController()
    const [staying, leaving] = [line.people(), line.people({ signal: leave.signal })]
    const timer = setTimeout(() => leave.abort(), LEAVE_AFTER_S * 1_000)
    const stayed: Visit[] = []
    const left: Visit[] = []
    const { visits, tookS, used } = await come(line, before * LEFT.times, LEFT.seconds, async (n, dueMs) => {
      const visit = await (n % 2 === 0 ? staying : leaving).visit(n, dueMs)
      ;(n % 2 === 0 ? stayed : left).push(visit)
      return visit
    })
    clearTimeout(timer)
    for (const people of [staying, leaving]) people.close()
    const hashes = (await line.system.jobs()) - hashedBefore
    const findings = new Findings().count(stayed)
    await line.expectCalm(findings, 'it')
    const capacity = (before + (await line.capacity())) / 2
    await neighbours.report(findings)

    const served = visits.filter(({ end }) => end === 'verdict').length
    const sentAway = stayed.filter((visit) => visit.sentAway.length > 0).length
    const goodput = served / tookS / capacity
    const forNobody = Math.max(0, hashes - served) / hashes
    const rate = `${goodput.toFixed(2)} of ${capacity.toFixed(1)} logins/s`
    const nobody = `of ${hashes} hashes ${(forNobody * 100).toFixed(1)} % were for nobody`
    findings.notes.push(
      `${stayed.length} stayed, ${left.length} left after ${LEAVE_AFTER_S} s, of whom ${served - findings.succeeded} were in; ${rate} ` +
        `until the last was in after ${tookS.toFixed(1)} s; ${nobody}; ${sentAway} sent away; ${used}`,
    )
    findings.notes.push(`before, of a core: ${usedBefore}`)
    findings.expectAllSucceeded()
    findings.expect(goodput >= GOODPUT_SHARE, `goodput was ${rate}`)
    findings.expect(forNobody <= FOR_NOBODY_SHARE, nobody)
    return findings
  }),
}

export const lineScenarios: readonly Scenario[] = [lineSpike, lineLeft]
