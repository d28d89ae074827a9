// The rules of the line: who gets in when more come than workers can hash, whatever the others do.
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, respondAsync } from '@spillway/infra/harness/api-client'
import { moveTo } from '@spillway/infra/processes/cores'
import { startProcess } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'
import { allCores, contenderCores } from '../../contenders/contender.ts'
import type { Credential } from '../../load/accounts.ts'
import { closedLoad, repeats } from '../../load/closed.ts'
import { startLoop } from '../../load/open-loop.ts'
import { arrivals, startTraffic, type Visit, type VisitorOptions } from '../../load/visit.ts'
import { Probe } from '../../measure/probe.ts'
import { quantile } from '../../measure/quantile.ts'
import { countBy, type Scenario, type System, seconds, type Trial, tookAt } from '../harness.ts'

/** People who stay until they are in. A held request is answered after 8 s, a refusal after some. */
const PATIENT = { tries: Number.POSITIVE_INFINITY, patienceMs: 330_000, timeoutMs: 30_000 }
/** Of the time of the work: the number of people, divided by the logins a second. */
const LAST_SHARE = 1.25

/** A worker whose hashes wait in so many slots, without processor time: its capacity is exact. */
function waiting(slots: number, ms: number) {
  const env = { WORKER_CONCURRENCY: String(slots) }
  const hash: Credential = `wait-${ms}`
  return { size: { hash, gateways: 1, workers: 1, workerEnv: env }, perSecond: (slots * 1_000) / ms }
}

/** Expects that all got in, and the last one soon enough; without a share that is a figure. */
function expectSoon(trial: Trial, what: string, visits: readonly Visit[], perSecond: number, most?: number): void {
  trial.visits.push(...visits)
  const firstMs = Math.min(...visits.map(({ dueMs }) => dueMs))
  const lastMs = Math.max(...visits.map(({ dueMs, tookMs }) => dueMs + tookMs)) - firstMs
  const share = lastMs / ((visits.length * 1_000) / perSecond)
  const quartiles = [0.25, 0.5, 0.75].map((part) => seconds(tookAt(visits, part))).join(', ')
  const last = `the last of ${visits.length} in after ${seconds(lastMs)} s, ${share.toFixed(2)} of the time of the work`
  trial.expectFigure(most === undefined || share <= most, `${what}: ${last}, quartiles ${quartiles} s`)
  const sentAway = visits.filter(({ refusals }) => refusals > 0).length
  const lost = visits.reduce((sum, { ticketsLost }) => sum + ticketsLost, 0)
  if (sentAway + lost > 0) trial.figure(`${sentAway} sent away on the way, ${lost} tickets lost`)
  trial.expectAllAnswered(visits)
}

/** Resolves when no job is left. */
async function drained({ gateways }: System): Promise<void> {
  const url = gateways.at(-1)?.opsUrl ?? ''
  const text = async () => (await fetch(`${url}/metrics`)).text()
  const isEmpty = async () => !/^spillway_queue_jobs\{.*state="(?!completed|failed).*"\} [1-9]/m.test(await text())
  await until(isEmpty, { timeoutMs: 90_000, what: 'an empty queue' })
}

/** Real hashes, four times as expensive as usual, so that few people exceed the capacity. */
const DEAR = {
  hash: 'dear',
  gateways: 1,
  workers: 1,
  workerEnv: { WORKER_CONCURRENCY: '1', ARGON2_TIME: '8' },
} as const
/** Callers who are all held, so that a slot never waits for a job. */
const HELD = 12

const spike: Scenario = {
  name: 'spike',
  promise: `Five times capacity for 4 s, ten times for 3 s, with real hashes: everyone gets in, the last one within ${LAST_SHARE} of the time of the work.`,
  async try(trial) {
    const system = await trial.spillway(DEAR)
    const capacity = () => system.people(PATIENT).perSecond(HELD, { settlingMs: 1_000, countedMs: 4_000 })
    // Compiles what is on the way, and lets the worker see what its hashes cost.
    await capacity()
    let before = await capacity()
    for (const [times, forS] of [
      [5, 4],
      [10, 3],
    ] as const) {
      const visits = await arrivals(system.people(PATIENT), { perSecond: before * times, seconds: forS })
      // Machines change their speed: the mean of both ends counts.
      const after = await capacity()
      expectSoon(trial, `${times} times`, visits, (before + after) / 2, LAST_SHARE)
      before = after
    }
  },
}

const LOOPS = [100, 400, 1_000]
const ROUNDS = 3
const POLITE_SHARE = 0.9

const loops: Scenario = {
  name: 'loops',
  promise: `${LOOPS.join(', ')} clients who throw their tickets away and log in again at once get ${POLITE_SHARE} of the logins that polite ones get (medians of ${ROUNDS}).`,
  async try(trial) {
    const system = await trial.spillway({
      hash: 'argon2id',
      gateways: 1,
      workers: 1,
      // On a quick machine, a thousand results come within a longer hold: then there are no tickets.
      gatewayEnv: { LOGIN_WAIT_MS: '2000' },
      workerEnv: { WORKER_CONCURRENCY: '2' },
    })
    const polite = (callers: number) =>
      system.people(PATIENT).perSecond(callers, { settlingMs: 2_000, countedMs: 4_000 })
    await polite(HELD)
    let thrown = 0
    for (const callers of LOOPS) {
      const shares: number[] = []
      let before = await polite(callers)
      for (let round = 0; round < ROUNDS; round++) {
        const { tally, seconds: s } = await closedLoad({
          url: system.gateways[0]?.url ?? '',
          callers,
          caller: repeats(system.login),
          settlingS: 4,
          countedS: 6,
        })
        thrown += tally.counts.ticket + tally.counts.busy
        trial.expect(tally.share('timeout', 'error') === 0, `${callers} loops: not every request had an answer`)
        // The jobs of thrown tickets are still there: polite clients would wait until they are skipped.
        await drained(system)
        const after = await polite(callers)
        shares.push(tally.counts.ok / s / ((before + after) / 2))
        before = after
      }
      const median = quantile(shares, 0.5) ?? 0
      const each = shares.map((share) => share.toFixed(2)).join(', ')
      trial.expectFigure(median >= POLITE_SHARE, `${callers} loops: ${median.toFixed(2)} of polite clients (${each})`)
    }
    trial.expectFigure(thrown > 0, `${thrown} tickets and refusals thrown away`)
  },
}

const HOARD = 2_000
/** Longer than anybody is present without a request: the jobs that still wait are skipped. */
const LEFT_MS = 10_000

const hoard: Scenario = {
  name: 'hoard',
  promise: `${HOARD.toLocaleString('en')} tickets are taken, left for ten seconds, and all redeemed at once: their requests are started again, no ticket expires, and everyone else gets in meanwhile.`,
  async try(trial) {
    const { size, perSecond } = waiting(20, 200)
    const system = await trial.spillway(size)
    const others = startTraffic(system.visitor({ ...PATIENT, everyNthWrong: 0 }), perSecond / 5)
    const taken = await Promise.all(
      Array.from({ length: HOARD }, async (_, n) => {
        await sleep(n * 5)
        const options = { body: system.login(n), ...respondAsync, timeoutMs: PATIENT.timeoutMs }
        return await system.ask(n, '/v1/login', options)
      }),
    )
    const held = taken.flatMap(({ body: { ticket } }) => ticket ?? [])
    trial.figure(`asked for tickets: ${countBy(taken.map(({ status }) => status))}`)
    await sleep(LEFT_MS)
    const skipped = await system.workersTell('spillway_jobs_total', 'outcome="skipped"')
    trial.expectFigure(skipped > 0, `${skipped} jobs skipped`)
    const returnedMs = performance.now()
    const ends: number[] = []
    await Promise.all(
      held.map(async (first) => {
        let ticket = first
        for (;;) {
          const { status, body, retryAfterMs } = await ask(system.gateways[0]?.url ?? '', '/v1/tickets/redeem', {
            body: { ticket },
            timeoutMs: PATIENT.timeoutMs,
          })
          if (![0, 202, 429, 503].includes(status)) return void ends.push(status)
          ticket = body.ticket ?? ticket
          await sleep(retryAfterMs)
        }
      }),
    )
    const tookMs = performance.now() - returnedMs
    trial.visits.push(...(await others.stop()))
    trial.figure(`redeemed within ${seconds(tookMs)} s: ${countBy(ends)}`)
    trial.figure(`others took ${seconds(tookAt(trial.visits, 0.5))} s, at most ${seconds(tookAt(trial.visits, 1))} s`)
    trial.expect(held.length > HOARD / 2, 'too few tickets were given, so nothing was tried')
    trial.expect(
      ends.every((status) => status === 200),
      'a hoarded ticket came to nothing',
    )
    trial.expectAllAnswered()
  },
}

/** The limits as they are by default, believing X-Forwarded-For. */
const LIMITED = {
  TRUST_PROXY: '127.0.0.1',
  LIMIT_PER_ADDRESS: '300',
  LIMIT_PER_ACCOUNT: '20',
  LIMIT_REDEEM_PER_ADDRESS: '30000',
  GUESSES_PER_ACCOUNT: '100',
}
const CROWD = 1_500

const crowd: Scenario = {
  name: 'crowd',
  promise: `${CROWD.toLocaleString('en')} people come from one address within a second, one in sixteen mistypes: all get in, the last one within ${LAST_SHARE} of the time of their work.`,
  async try(trial) {
    const { size, perSecond } = waiting(12, 200)
    const system = await trial.spillway({ ...size, gatewayEnv: LIMITED })
    const people = system.people({
      ...PATIENT,
      everyNthWrong: 16,
      headers: () => ({ 'x-forwarded-for': '203.0.113.9' }),
    })
    expectSoon(trial, 'the crowd', await arrivals(people, { perSecond: CROWD, seconds: 1 }), perSecond, LAST_SHARE)
  },
}

const workersJoining: Scenario = {
  name: 'workers-joining',
  promise:
    'Workers join in a spike with three times the capacity: everyone gets in, the last one within 1.25 of the time that they need, and five seconds.',
  async try(trial) {
    const { size, perSecond } = waiting(4, 200)
    const joining = waiting(12, 200)
    const system = await trial.spillway(size)
    const coming = arrivals(system.people(PATIENT), { perSecond: 60, seconds: 10 })
    await sleep(10_000)
    await system.worker({ env: joining.size.workerEnv })
    await system.knowsWorkers(2)
    const joinedMs = performance.now()
    trial.visits.push(...(await coming))
    const left = trial.visits.filter(({ dueMs, tookMs }) => dueMs + tookMs > joinedMs)
    const lastMs = Math.max(...left.map(({ dueMs, tookMs }) => dueMs + tookMs)) - joinedMs
    const workMs = (left.length * 1_000) / (perSecond + joining.perSecond)
    const last = `${left.length} waited then, the last one in after ${seconds(lastMs)} s, their work ${seconds(workMs)} s`
    // Who was told to come back later than that comes back then.
    trial.expectFigure(lastMs <= workMs * LAST_SHARE + 5_000, last)
    trial.expect(left.length > 200, 'too few waited, so nothing was tried')
    trial.expectAllAnswered()
  },
}

const OWNERS = 100
const ADDRESSES = 10_000

const knownDevices: Scenario = {
  name: 'known-devices',
  promise: 'Ten times capacity of wrong passwords comes from ten thousand addresses: 99 % of known devices log in.',
  async try(trial) {
    const { size, perSecond } = waiting(10, 200)
    const system = await trial.spillway({ ...size, gatewayEnv: { ...LIMITED, TICKET_TTL_MS: '12000' } })
    const home = (person: number) => `192.0.2.${(person % OWNERS) + 1}`
    const tokens: string[] = []
    for (let person = 0; person < OWNERS; person++) {
      const headers = { 'x-forwarded-for': home(person) }
      const { body } = await system.ask(person, '/v1/login', { body: system.login(person), headers })
      tokens.push(body.deviceToken ?? '')
    }
    let sent = 0
    const statuses: number[] = []
    const strangers = startLoop(perSecond * 10, async () => {
      const n = sent++
      const { status } = await system.ask(n, '/v1/login', {
        body: { ...system.login(n), password: 'wrong' },
        headers: { 'x-forwarded-for': `10.0.${(n >> 8) % 40}.${n & 255}` },
      })
      statuses.push(status)
    })
    await sleep(5_000)
    const owners: Partial<VisitorOptions> = {
      login: (number) => system.login(number % OWNERS),
      headers: (number) => ({ 'spillway-device': tokens[number % OWNERS] ?? '', 'x-forwarded-for': home(number) }),
      everyNthWrong: 0,
    }
    const known = startTraffic(system.visitor(owners), perSecond / 5)
    await sleep((ADDRESSES / perSecond / 10) * 1_000 - 5_000)
    trial.visits.push(...(await known.stop()))
    await strangers.stop()
    const share = trial.visits.filter(({ end }) => end === 'answered').length / trial.visits.length
    const p95 = `p95 ${seconds(tookAt(trial.visits, 0.95))} s`
    trial.expectFigure(share >= 0.99, `${(share * 100).toFixed(1)} % of known devices logged in, ${p95}`)
    trial.figure(`strangers: ${countBy(statuses)}`)
    const answered = statuses.filter((status) => status === 401).length
    trial.expect(answered < statuses.length / 2, 'most strangers were answered, so nothing was tried')
  },
}

/** The most that the gateway can do: few enough connections for no refusal. */
const PEAK = { callers: 200, settlingS: 1, countedS: 4 }
/** A gateway accepts one connection in each turn of its event loop, so all are there only after some seconds. */
const FLOOD = { callers: 3_000, perSecond: 4_000, settlingS: 12, countedS: 6 }
const GOODPUT_SHARE = 0.8

const gatewayFlood: Scenario = {
  name: 'gateway-flood',
  promise: `3,000 connections log in 4,000 times a second at a gateway with half a core: it does ${GOODPUT_SHARE} of its peak once all are connected, answers everyone and /healthz on the ops port, and is itself again two seconds later.`,
  async try(trial) {
    // Everything else has the other cores, where there are some.
    const pids = [process.pid, trial.servers.postgres.pid()]
    for (const pid of pids) if (contenderCores) moveTo(pid, contenderCores)
    trial.atEnd(() => {
      for (const pid of pids) moveTo(pid, allCores)
    })
    const { size } = waiting(200, 20)
    const system = await trial.spillway({ ...size, gateways: 0 })
    const { url, opsUrl } = await system.gateway(contenderCores ? { cores: [0] } : {})
    await system.knowsWorkers(1)
    const hog = startProcess({ entry: '-e', args: ['for (;;);'], cores: [0] })
    trial.atEnd(hog.close)
    const healthz = new Probe({
      perSecond: 20,
      ask: async () => (await ask(opsUrl, '/healthz')).status === 200,
    }).start()
    const offer = async (load: typeof PEAK & { perSecond?: number }) => {
      const { tally, seconds: s } = await closedLoad({ url, caller: repeats(system.login), ...load })
      trial.expect(tally.share('timeout', 'error') === 0, `${load.callers} connections: not everyone was answered`)
      return { tally, perSecond: tally.counts.ok / s }
    }
    const login = async () => (await ask(url, '/v1/login', { body: system.login(0) })).tookMs
    const median = async () =>
      quantile([await login(), await login(), await login(), await login(), await login()], 0.5)
    await offer(PEAK)
    const [usual = 0, before] = [await median(), await offer(PEAK)]
    const flooded = await offer(FLOOD)
    await sleep(2_000)
    const [calm = 0, after] = [await median(), await offer(PEAK)]
    await healthz.stop()
    const peak = (before.perSecond + after.perSecond) / 2
    const share = flooded.perSecond / peak
    const rate = `${flooded.perSecond.toFixed(0)} logins/s, ${share.toFixed(2)} of the peak beside it`
    trial.expectFigure(share >= GOODPUT_SHARE, `${rate}; ${flooded.tally.counts.busy} refused`)
    trial.expect(flooded.tally.counts.busy > 0, 'nobody was refused, so nothing was tried')
    trial.expectFigure(healthz.failed === 0, `/healthz p99 ${healthz.p99()}, ${healthz.failed} failed`)
    trial.figure(`a login two seconds later ${calm.toFixed(0)} ms, before ${usual.toFixed(0)} ms`)
    const recovered = after.perSecond / before.perSecond
    trial.expectFigure(recovered >= GOODPUT_SHARE, `afterwards ${recovered.toFixed(2)} of the peak before it`)
  },
}

export const lineScenarios: readonly Scenario[] = [
  spike,
  loops,
  hoard,
  crowd,
  workersJoining,
  knownDevices,
  gatewayFlood,
]
