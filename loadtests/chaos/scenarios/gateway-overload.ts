// More requests than the gateway itself can process: logins, and made-up tickets and refresh tokens beside them.
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from '@spillway/local/rig/quantile'
import { answersOf, isOk, onShortGateway, rush, rushLogins, slowestLogin, watchNeighbours } from '../one-gateway.ts'
import type { RushOptions } from '../rush.ts'
import { Findings, type Scenario } from '../scenario.ts'
import type { Stage, System } from '../stage/stage.ts'

/** Logins a second, and the connections that offer them. A refusal is answered after half a second to three. */
const BUSY = { perSecond: 2_000, connections: 2_000 }
/** Offered in every round. */
const OFFERED = [BUSY, { perSecond: 4_000, connections: 3_000 }]
const STEP = { durationS: 7, settlingS: 3 }
/**
 * The most that the gateway can do: connections that log in again as soon as they have their answer, few enough that nobody is refused.
 * Measured before and after each step, because machines change their speed by a fifth within a minute.
 */
const PEAK = { connections: 200, durationS: 4, settlingS: 1 }
/**
 * Of the peak beside it, or of what is offered where that is less: the median of all steps, and of the steps of one rate. On two machines
 * the median was 1.0; single steps gave 0.74 to 1.19.
 */
const GOODPUT_SHARE = 0.9
const GOODPUT_SHARE_OF_RATE = 0.8

/**
 * Between the rounds: requests that claim to continue something, beside logins as in a first step, which come without them before and after. No
 * limit of addresses or sessions is in force: they come from everywhere.
 */
const FLOODS = [
  { name: 'a made-up ticket', path: '/v1/tickets/redeem', body: { ticket: 'made up' } },
  { name: 'a made-up refresh token', path: '/v1/token/refresh', body: { refreshToken: 'made up' } },
]
const FLOOD = { connections: 500, durationS: STEP.durationS + 1, settlingS: 0 }
/** Of the logins without a flood. */
const LOGINS_SHARE = 0.8

/** Logins are tried this long after the end of a step. */
const OVER_AFTER_MS = 2_000
const FRESH_LOGINS = 40

export const gatewayOverload: Scenario = {
  name: 'gateway-overload',
  promise: `However many log in on three thousand connections, a gateway goes on doing what it can, and everyone is answered; a flood of made-up tickets or tokens leaves logins ${LOGINS_SHARE} of their throughput.`,
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
  async function round(): Promise<void> {
    let before = await offer('peak', PEAK)
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

  /** On a gateway at rest, as beside a flood: right after a step of other logins fewer are let in. */
  async function withoutFlood(): Promise<number> {
    await expectCalm('the last')
    return (await offer('without a flood', { ...STEP, ...BUSY })).perSecond
  }

  await round()
  const first = await withoutFlood()
  const beside: { what: string; perSecond: number }[] = []
  for (const { name, ...sends } of FLOODS) {
    await expectCalm('the last')
    const logins = offer(`beside ${name}`, { ...STEP, ...BUSY })
    const [flood, { perSecond }] = await Promise.all([rush(stage, { url, sends, ...FLOOD }), logins])
    const answers = answersOf(flood.statuses)
    findings.expect(answers >= FLOOD.connections, `${sends.path} was asked ${answers} times: that is no flood`)
    beside.push({ what: `${(answers / FLOOD.durationS).toFixed(0)} times ${name} a second`, perSecond })
  }
  const without = (first + (await withoutFlood())) / 2
  await expectCalm('the last')
  await round()
  for (const { what, perSecond } of beside) {
    const share = `${(perSecond / without).toFixed(2)} of the logins beside ${what}`
    findings.notes.push(share)
    findings.expect(perSecond >= LOGINS_SHARE * without, share)
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
