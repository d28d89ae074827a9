// More requests than the gateway itself can process: logins, and made-up tickets and refresh tokens beside them.
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from '@spillway/local/rig/quantile'
import { startProgram } from '../../contenders/contender.ts'
import { contenderCores } from '../../measure/cores.ts'
import { processorTimeOf } from '../../measure/observe.ts'
import { answersOf, isOk, onShortGateway, rush, rushLogins, slowestLogin, watchNeighbours } from '../one-gateway.ts'
import type { RushOptions } from '../rush.ts'
import { Findings, type Scenario } from '../scenario.ts'
import type { Stage, System } from '../stage/stage.ts'

/** Offered in every round: logins a second, and the connections that offer them. A refusal is answered after half a second to three. */
const OFFERED = [
  { perSecond: 800, connections: 800 },
  { perSecond: 2_000, connections: 2_000 },
  { perSecond: 4_000, connections: 3_000 },
]
const STEP = { durationS: 8, settlingS: 3 }
const ROUNDS = 2
/**
 * The most that the gateway can do: connections that log in again as soon as they have their answer, few enough that nobody is refused.
 * Measured before and after each step, because machines change their speed by a fifth within a minute.
 */
const PEAK = { connections: 200, durationS: 5, settlingS: 1 }
/**
 * Of the peak beside it, or of what is offered where that is less: the median of all steps, and of the steps of one rate. On two machines
 * the median was 1.0; single steps gave 0.74 to 1.19.
 */
const GOODPUT_SHARE = 0.9
const GOODPUT_SHARE_OF_RATE = 0.8
/** Logins are tried this long after the end of a step. */
const OVER_AFTER_MS = 2_000
const FRESH_LOGINS = 40

export const gatewayOverload: Scenario = {
  name: 'gateway-overload',
  promise:
    'However many log in on three thousand connections, a gateway goes on doing what it can, and everyone is answered.',
  alone: true,
  run: onShortGateway(overload),
}

async function overload(system: System, url: string, stage: Stage): Promise<Findings> {
  const idleMs = await slowestLogin(system, FRESH_LOGINS)
  const watched = await watchNeighbours(stage.keeper, { '/healthz': () => isOk(url, '/healthz') })
  const findings = new Findings()

  /** Verdicts a second, and how many were refused. */
  async function offer(name: string, load: Omit<RushOptions, 'sends' | 'url'>) {
    const { ok, busy, slowestMs } = await rushLogins(stage, { url, ...load }, findings)
    const perSecond = ok / (load.durationS - load.settlingS)
    const slowest = `${slowestMs.toFixed(0)} ms at most`
    findings.notes.push(`${name}: ${perSecond.toFixed(0)}/s, ${busy} refused, ${slowest}`)
    return { perSecond, busy }
  }

  async function expectCalm(name: string): Promise<void> {
    await sleep(OVER_AFTER_MS)
    const freshMs = await slowestLogin(system, FRESH_LOGINS)
    findings.notes.push(`a login after ${name} ${freshMs.toFixed(0)} ms, before all ${idleMs.toFixed(0)}`)
    findings.expect(Number.isFinite(freshMs), `a login after ${name} got no verdict`)
  }

  const shares = new Map<string, number[]>()
  let before = await offer('peak', PEAK)
  for (let round = 0; round < ROUNDS; round++) {
    for (const offered of OFFERED) {
      const { perSecond } = offered
      const name = `${perSecond.toLocaleString('en')}/s`
      const done = await offer(name, { ...STEP, ...offered })
      await expectCalm(name)
      const after = await offer('peak', PEAK)
      // No more than was offered counts: what had piled up while the step settled is answered in the time that counts.
      const possible = Math.min(perSecond, (before.perSecond + after.perSecond) / 2)
      shares.set(name, [...(shares.get(name) ?? []), Math.min(perSecond, done.perSecond) / possible])
      if (offered === OFFERED.at(-1)) findings.expect(done.busy > 0, `at ${name} nobody was refused: no overload`)
      before = after
    }
  }

  function expectMedian(name: string, of: readonly number[], least: number): void {
    const median = quantile(of, 0.5) ?? 0
    const share = `${median.toFixed(2)} of the peak beside it (${of.map((each) => each.toFixed(2)).join(', ')})`
    findings.notes.push(`${name}: ${share}`)
    findings.expect(median >= least, `${name}: ${share}`)
  }
  for (const [name, each] of shares) expectMedian(name, each, GOODPUT_SHARE_OF_RATE)
  expectMedian('at all rates', [...shares.values()].flat(), GOODPUT_SHARE)

  const neighbours = await watched()
  neighbours.report(findings)
  findings.expect(findings.failed === 0, `${findings.failed} requests got no verdict, ticket or refusal`)
  return findings
}

// A flood of requests that claim to continue something, with made-up tickets and refresh tokens, at a gateway that has as many logins as it
// can process. No limit of addresses or sessions is in force: it comes from everywhere.

const LOGINS = { perSecond: 1_600, connections: 1_600, durationS: 12, settlingS: 3 }
const FLOODS = [
  { name: 'a made-up ticket', path: '/v1/tickets/redeem', body: { ticket: 'made up' } },
  { name: 'a made-up refresh token', path: '/v1/token/refresh', body: { refreshToken: 'made up' } },
]
const FLOOD = { connections: 500, durationS: LOGINS.durationS + 1, settlingS: 0 }
/** Of the logins without a flood. */
const LOGINS_SHARE = 0.8

/** Few enough for a gateway with a part of a core. */
const STEADY = { perSecond: 300, connections: 900, durationS: 8, settlingS: 0 }
/** Before it: a flood lasts, and the first thousands of requests cost twice as much, until their code is compiled. */
const COMPILING = { perSecond: 1_000, connections: 3_000, durationS: 5, settlingS: 0 }
/** Until the last held answers are due: each is held for three seconds. */
const HELD_MS = 3_500

/** The kernel counts in 10 ms. */
const REST_MS = 6_000

interface Target {
  name: string
  url: string
  pid: number
  sends: Pick<(typeof FLOODS)[number], 'path' | 'body'>
  /** At the end every connection waits for an answer, and leaves. */
  isHeld: boolean
  /** What the server does with nothing to do, in milliseconds of processor time a second [0]. */
  restPerS?: number
}

/** Resolves with the number of requests when the last was answered. */
async function send(stage: Stage, { url, sends, isHeld }: Target, load: typeof STEADY): Promise<number> {
  const { statuses } = await rush(stage, { url, sends, ...load })
  await sleep(HELD_MS)
  return answersOf(statuses) + (isHeld ? load.connections : 0)
}

/** The processor time of a request beyond what the server does at rest, in milliseconds. */
async function costOf(stage: Stage, target: Target): Promise<number> {
  const running = { parts: [{ role: 'server', pid: target.pid }] }
  const { parts, seconds, result } = await processorTimeOf(running, [], () => send(stage, target, STEADY))
  return ((parts[0]?.totalMs ?? Number.NaN) - (target.restPerS ?? 0) * seconds) / result
}

/** Notes what each of the floods costs beside a bare POST, and what a bare POST costs whose answer is held as long. */
async function noteCosts(findings: Findings, stage: Stage, { url, pid }: Pick<Target, 'url' | 'pid'>): Promise<void> {
  const program = await startProgram('measure/bare-post-program', contenderCores ? { cores: [0] } : {})
  try {
    const { parts, seconds } = await processorTimeOf({ parts: [{ role: 'gateway', pid }] }, [], () => sleep(REST_MS))
    const restPerS = (parts[0]?.totalMs ?? Number.NaN) / seconds
    const bare = { url: String(program.ready.url), pid: program.pid }
    const body = { ticket: 'made up' }
    const post = { name: 'a bare POST', ...bare, sends: { path: '/', body }, isHeld: false }
    const others = [
      { name: 'a bare POST that is held as long', ...bare, sends: { path: '/held', body }, isHeld: true },
      ...FLOODS.map(({ name, ...sends }) => ({ name, url, pid, sends, isHeld: true, restPerS })),
    ]
    for (const target of [post, ...others]) await send(stage, target, COMPILING)
    const postMs = await costOf(stage, post)
    for (const target of others) {
      const ms = await costOf(stage, target)
      const times = `${(ms / postMs).toFixed(2)} of a bare POST's processor time`
      findings.notes.push(`${target.name} ${times} (${ms.toFixed(3)} of ${postMs.toFixed(3)} ms)`)
    }
  } finally {
    await program.close()
  }
}

export const gatewayFlood: Scenario = {
  name: 'gateway-flood',
  promise: `Whoever floods a gateway with made-up tickets or tokens leaves logins ${LOGINS_SHARE} of their throughput.`,
  alone: true,
  run: onShortGateway(async ({ gateways }, url, stage) => {
    const findings = new Findings()
    await noteCosts(findings, stage, { url, pid: gateways[0]?.pid ?? 0 })

    /** Verdicts a second; what probes wait meanwhile is noted. */
    async function login(when: string): Promise<number> {
      const watched = await watchNeighbours(stage.keeper, { '/healthz': () => isOk(url, '/healthz') })
      const { ok } = await rushLogins(stage, { url, ...LOGINS }, findings)
      const neighbours = await watched()
      findings.notes.push(`${when}:`)
      neighbours.report(findings)
      return Math.min(LOGINS.perSecond, ok / (LOGINS.durationS - LOGINS.settlingS))
    }

    const before = await login('without a flood')
    const rates: { name: string; beside: number; flood: number }[] = []
    for (const { name, ...sends } of FLOODS) {
      const [flood, beside] = await Promise.all([rush(stage, { url, sends, ...FLOOD }), login(`beside ${name}`)])
      const answers = answersOf(flood.statuses)
      rates.push({ name, beside, flood: answers / FLOOD.durationS })
      findings.expect(answers >= FLOOD.connections, `${sends.path} was asked ${answers} times: that is no flood`)
    }
    const after = await login('afterwards')
    const alone = (before + after) / 2
    for (const { name, beside, flood } of rates) {
      const share = `${(beside / alone).toFixed(2)} of the logins beside ${flood.toFixed(0)} times ${name} a second`
      findings.notes.push(`${share} (${beside.toFixed(0)}/s of ${before.toFixed(0)} and ${after.toFixed(0)})`)
      findings.expect(beside >= LOGINS_SHARE * alone, share)
    }
    findings.expect(alone > 0, 'without a flood nobody logged in')
    findings.expect(findings.refused > 0, 'nothing was refused, so nothing was tried')
    findings.expect(findings.failed === 0, `${findings.failed} logins got no verdict, ticket or refusal`)
    return findings
  }),
}
