// More logins come than workers can do, up to ten times as many: as many succeed as at capacity, the others are told when to
// come back, nobody else notices, and when it is over it is over.
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '@spillway/local/testing/api-client'
import { allCores, contenderCores, moveTo } from '../../measure/cores.ts'
import { Latency } from '../../measure/latency.ts'
import { countVisits, expect, type Findings, newFindings } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { startBareServer } from '../stage/bare-server.ts'
import { drained } from '../stage/queue.ts'
import type { RedisServer } from '../stage/redis.ts'
import type { Stage } from '../stage/stage.ts'
import { openSystem, type System } from '../stage/system.ts'
import { BARE, watchNeighbours } from '../traffic/neighbours.ts'
import { startTraffic } from '../traffic/traffic.ts'
import { createVisitor, type Visit } from '../traffic/visit.ts'

/** Each hash waits so long in one of so many slots, and needs no processor time. */
const CREDENTIAL = 'wait-200'
const SERVICE_MS = 200
const SLOTS = 5
const CAPACITY = (SLOTS * 1_000) / SERVICE_MS

/** Short, so that the cap is reached and everything is over within one step. */
const TICKET_TTL_MS = 12_000
const LOAD_MS = 30_000
const GOODPUT_SHARE = 0.95
const REFUSED_WITHIN_MS = 50
/** At p99, more than a bare server on the same processor takes at the same time. */
const NEIGHBOUR_LIMIT_MS = 20
/** So long after the end a login is as quick as ever, but for the hash that may be ahead of it in every slot. */
const OVER_AFTER_MS = 2_000
const NOISE_MS = 50
const FRESH_LOGINS = 5
const WARM_UP_LOGINS = 60

interface Step {
  name: string
  /** Of what workers can do. */
  times: number
  tries?: number
  polite?: boolean
}

interface StepResult {
  visits: Visit[]
  /**
   * Verdicts per second, over the time until the last of their hashes was done. Not over the load alone: those with a ticket
   * come for their verdict some seconds after the hash.
   */
  goodput: number
  /** The slowest login of those after the load, in milliseconds. */
  freshMs: number
}

async function runStep(stage: Stage, redis: RedisServer, system: System, step: Step): Promise<StepResult> {
  const { times, tries = 1, polite = true } = step
  const visitor = createVisitor({
    urls: system.gateways.map(({ url }) => url),
    accounts: stage.accounts,
    credential: CREDENTIAL,
    tries,
    polite,
  })
  const startMs = performance.now()
  const traffic = startTraffic(visitor, CAPACITY * times)
  await sleep(LOAD_MS)
  const over = traffic.stop()
  // Each try may come after a wait as long as a ticket lives.
  const emptied = drained(redis, system.queuePrefix, TICKET_TTL_MS * (tries + 1)).then(() => performance.now())
  // Awaited below: a failure before that must not end the process.
  emptied.catch(() => undefined)
  // Those who come back when they are told to are load as well, for as long as they do.
  if (tries > 1 && polite) await over
  await sleep(OVER_AFTER_MS)
  const freshMs = Math.max(...(await freshLogins(stage, system)))
  const visits = await over
  visitor.close()
  const emptiedMs = await emptied
  // Who was refused, and came back when all was over, is no part of it.
  const counted = visits.filter(
    ({ end, ticketed, dueMs, tookMs }) => end === 'verdict' && (ticketed || dueMs + tookMs <= emptiedMs),
  )
  return { visits, freshMs, goodput: (counted.length * 1_000) / (emptiedMs - startMs) }
}

/** How long each of some logins takes, one after the other, in milliseconds. */
async function freshLogins(stage: Stage, { gateways }: System, count = FRESH_LOGINS): Promise<number[]> {
  const tookMs: number[] = []
  for (let n = 0; n < count; n++) {
    const login = stage.accounts.login(CREDENTIAL, 4_000 + n)
    const { status, tookMs: took } = await ask(gateways[0]?.url ?? '', '/v1/login', { body: login })
    tookMs.push(status === 200 ? took : Number.POSITIVE_INFINITY)
  }
  return tookMs
}

/** One gateway, on a processor of its own where that can be had, and one worker. */
async function withCapacity(
  stage: Stage,
  run: (parts: { redis: RedisServer; system: System }) => Promise<Findings>,
): Promise<Findings> {
  if (contenderCores !== undefined) {
    // What is started from here goes along.
    moveTo(process.pid, contenderCores)
    moveTo(await stage.postgres.pid(), contenderCores)
  }
  const redis = await stage.redis()
  const system = openSystem(stage, {
    redisUrl: redis.url,
    gatewayEnv: { TICKET_TTL_MS: String(TICKET_TTL_MS) },
    workerEnv: { WORKER_CONCURRENCY: String(SLOTS) },
  })
  try {
    const [gateway] = await Promise.all([system.gateway(), system.worker()])
    if (contenderCores !== undefined) moveTo(gateway.pid, [0])
    await system.knowsWorkers(1)
    await stage.accounts.seed(CREDENTIAL)
    // A new worker goes by what a hash of today's policy takes; it has to see what these ones take.
    for (let n = 0; n < WARM_UP_LOGINS / SLOTS; n++) {
      await Promise.all(Array.from({ length: SLOTS }, () => freshLogins(stage, system, 1)))
    }
    return await run({ redis, system })
  } finally {
    await system.close()
    await redis.close()
    for (const pid of [process.pid, await stage.postgres.pid()]) moveTo(pid, allCores)
  }
}

async function overload(stage: Stage, steps: readonly Step[]): Promise<Findings> {
  return withCapacity(stage, async ({ redis, system }) => {
    const idleMs = Math.max(...(await freshLogins(stage, system)))
    const results: StepResult[] = []
    const bare = await startBareServer(stage.keeper, contenderCores === undefined ? undefined : [0])
    const neighbours = await watchNeighbours(
      system.gateways[0]?.url ?? '',
      bare.url,
      stage.accounts.login(CREDENTIAL, 4_500),
    )
    for (const step of steps) results.push(await runStep(stage, redis, system, step))
    const watched = await neighbours()
    bare.close()
    const machineMs = watched.find(({ path }) => path === BARE)?.p99Ms ?? 0

    const visits = results.flatMap((result) => result.visits)
    const findings = countVisits(visits)
    expect(findings, findings.failed === 0, `${findings.failed} visits had no defined answer, or lost their ticket`)

    const peak = Math.max(...results.map(({ goodput }) => goodput))
    for (const [n, { goodput, freshMs }] of results.entries()) {
      const name = steps[n]?.name ?? ''
      findings.notes.push(`${name}: ${goodput.toFixed(1)}/s, a login after it ${Math.round(freshMs)} ms`)
      expect(
        findings,
        goodput >= peak * GOODPUT_SHARE,
        `at ${name} ${goodput.toFixed(1)}/s succeeded of ${peak.toFixed(1)}`,
      )
      const limitMs = idleMs + SERVICE_MS + NOISE_MS
      expect(
        findings,
        freshMs <= limitMs,
        `a login after ${name} took ${Math.round(freshMs)} ms, idle ${Math.round(idleMs)}`,
      )
    }
    findings.notes.push(`idle ${Math.round(idleMs)} ms`)

    if (steps.every(({ tries = 1 }) => tries === 1)) {
      const refusal = new Latency()
      for (const { end, tookMs } of visits) if (end === 'refused') refusal.record(tookMs)
      findings.notes.push(`refused within ${refusal.atMs(99).toFixed(1)} ms at p99`)
      expect(
        findings,
        refusal.atMs(99) <= REFUSED_WITHIN_MS + machineMs,
        `a refusal took ${refusal.atMs(99).toFixed(1)} ms at p99`,
      )
    }
    for (const { path, p99Ms, failed } of watched) {
      findings.notes.push(`${path} p99 ${p99Ms.toFixed(1)} ms`)
      expect(findings, p99Ms <= NEIGHBOUR_LIMIT_MS + machineMs, `${path} took ${p99Ms.toFixed(1)} ms at p99`)
      expect(findings, failed === 0, `${path} failed ${failed} times`)
    }
    findings.broken.push(...system.complaints())
    if (findings.broken.length > 0) findings.notes.push(...system.warnings())
    return findings
  })
}

const spike: Scenario = {
  name: 'overload',
  promise: 'At 1, 2, 5 and 10 times capacity as many logins succeed as at its peak, and 2 s after a spike it is over.',
  estimatedS: 190,
  run: (stage) =>
    overload(
      stage,
      [1, 2, 5, 10].map((times) => ({ name: `${times}×`, times })),
    ),
}

const retries: Scenario = {
  name: 'overload-retries',
  promise: 'Refused clients that come back, when they are told to or at once, three times each, do not change that.',
  estimatedS: 155,
  run: (stage) =>
    overload(stage, [
      { name: '1×', times: 1 },
      { name: '2× and polite', times: 2, tries: 3 },
      { name: '5× and rude', times: 5, tries: 3, polite: false },
    ]),
}

const BURST = 300

const retryAfter: Scenario = {
  name: 'retry-after',
  promise: 'A refused client that retries after its Retry-After is admitted.',
  estimatedS: 25,
  run: (stage) =>
    withCapacity(stage, async ({ redis, system }) => {
      const url = system.gateways[0]?.url ?? ''
      const findings = newFindings()
      const toldS: number[] = []
      async function visit(number: number): Promise<void> {
        const request = { body: stage.accounts.login(CREDENTIAL, number), headers: { prefer: 'respond-async' } }
        const first = await ask(url, '/v1/login', request)
        if (first.status === 202) return void findings.ticketed++
        findings.refused++
        const seconds = Number(first.headers['retry-after'])
        toldS.push(seconds)
        await sleep(seconds * 1_000)
        const again = await ask(url, '/v1/login', request)
        if (again.status === 202) findings.succeeded++
        else findings.failed++
      }
      // Faster than any worker, and slow enough for the gateway to know how many there are.
      const visits: Promise<void>[] = []
      while (visits.length < BURST) {
        visits.push(visit(visits.length))
        await sleep(3)
      }
      await Promise.all(visits)
      findings.requests = visits.length
      await drained(redis, system.queuePrefix, TICKET_TTL_MS)
      findings.notes.push(`told to wait ${Math.min(...toldS)} to ${Math.max(...toldS)} s`)
      expect(findings, findings.refused > 0, 'nothing was refused, so nothing was tried')
      expect(findings, findings.failed === 0, `${findings.failed} came back when told to and were refused again`)
      return findings
    }),
}

export const overloadScenarios: readonly Scenario[] = [spike, retries, retryAfter]
