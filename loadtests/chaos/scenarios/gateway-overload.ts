// More requests than the gateway can process: logins, made-up tickets, made-up refresh tokens.
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from '@spillway/infra/rig/quantile'
import { Findings } from '../findings.ts'
import {
  answersOf,
  credential,
  type Load,
  onShortGateway,
  rush,
  rushLogins,
  slowestLogin,
  watchNeighbours,
} from '../one-gateway.ts'
import type { Scenario } from '../scenario.ts'
import type { Stage, System } from '../stage/stage.ts'

/** Logins a second, and their connections. A refusal takes half a second to three. */
const BUSY = { perSecond: 2_000, connections: 2_000 }
/** Offered in every round. */
const OFFERED = [BUSY, { perSecond: 4_000, connections: 3_000 }]
const STEP = { durationS: 6, settlingS: 3 }
const ROUNDS = 2
/**
 * The most that the gateway can do: few enough connections for no refusal. Measured around each
 * step, because machines change their speed by a fifth within a minute.
 */
const PEAK = { connections: 200, durationS: 3, settlingS: 1 }
/**
 * Of the peak beside it, or of the offered rate where that is less: the median of all steps, and of
 * the steps of one rate. On two machines the median was 1.0, single steps 0.74 to 1.19.
 */
const GOODPUT_SHARE = 0.9
const GOODPUT_SHARE_OF_RATE = 0.8

/**
 * Floods beside logins at the rate of a first step. No limit of addresses or sessions is in force.
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

/** Offers logins to a gateway, and looks at it afterwards. */
async function openOffers({ system, url, stage }: { system: System; url: string; stage: Stage }) {
  const idleMs = await slowestLogin(system, FRESH_LOGINS)
  const neighbours = await watchNeighbours(stage, url)
  const findings = new Findings()
  return {
    findings,
    async offer(name: string, load: Load) {
      const rushed = await rushLogins(stage, { url, credential, ...load }, findings)
      const { perSecond, refused, slowestMs } = rushed
      const slowest = `${slowestMs.toFixed(0)} ms at most`
      findings.notes.push(`${name}: ${perSecond.toFixed(0)}/s, ${refused} refused, ${slowest}`)
      return rushed
    },
    async expectCalm(name: string): Promise<void> {
      await sleep(OVER_AFTER_MS)
      const freshMs = await slowestLogin(system, FRESH_LOGINS)
      findings.notes.push(`a login after ${name} ${freshMs.toFixed(0)} ms, before all ${idleMs.toFixed(0)}`)
      findings.expect(Number.isFinite(freshMs), `a login after ${name} got no verdict`)
    },
    /** Every request must have had its answer. */
    async end(): Promise<Findings> {
      await neighbours.report(findings)
      findings.expectAllDefined()
      return findings
    },
  }
}

export const gatewayOverload: Scenario = {
  name: 'gateway-overload',
  promise:
    'However many log in on three thousand connections, a gateway goes on doing what it can, and everyone is answered.',
  alone: true,
  run: onShortGateway(async (system, url, stage) => {
    const { findings, offer, expectCalm, end } = await openOffers({ system, url, stage })
    const shares = new Map<string, number[]>()
    let before = await offer('peak', PEAK)
    for (let round = 0; round < ROUNDS; round++) {
      for (const offered of OFFERED) {
        const { perSecond } = offered
        const name = `${perSecond.toLocaleString('en')}/s`
        const done = await offer(name, { ...STEP, ...offered })
        await expectCalm(name)
        const after = await offer('peak', PEAK)
        // A backlog from settling is answered in the counted time: bounded by the offered rate.
        const possible = Math.min(perSecond, (before.perSecond + after.perSecond) / 2)
        shares.set(name, [...(shares.get(name) ?? []), Math.min(perSecond, done.perSecond) / possible])
        if (offered === OFFERED.at(-1)) findings.expect(done.refused > 0, `at ${name} nobody was refused: no overload`)
        before = after
      }
    }
    function expectMedian(name: string, of: readonly number[], least: number): void {
      const median = quantile(of, 0.5) ?? 0
      const share = `${median.toFixed(2)} of the peak beside it (${of.map((each) => each.toFixed(2)).join(', ')})`
      findings.expectFigure(median >= least, `${name}: ${share}`)
    }
    for (const [name, each] of shares) expectMedian(name, each, GOODPUT_SHARE_OF_RATE)
    expectMedian('at all rates', [...shares.values()].flat(), GOODPUT_SHARE)
    return await end()
  }),
}

export const gatewayFlood: Scenario = {
  name: 'gateway-flood',
  promise: `Whoever floods a gateway with made-up tickets or tokens leaves logins ${LOGINS_SHARE} of their throughput.`,
  alone: true,
  run: onShortGateway(async (system, url, stage) => {
    const { findings, offer, expectCalm, end } = await openOffers({ system, url, stage })
    /** Each on a gateway at rest: right after a step of other logins fewer are let in. */
    async function logins(name: string): Promise<number> {
      const { perSecond } = await offer(name, { ...STEP, ...BUSY })
      await expectCalm(name)
      return perSecond
    }

    const before = await logins('without a flood')
    const beside: { what: string; perSecond: number }[] = []
    for (const { name, ...sends } of FLOODS) {
      const [flood, perSecond] = await Promise.all([rush(stage, { url, sends, ...FLOOD }), logins(`beside ${name}`)])
      const answers = answersOf(flood.statuses)
      findings.expect(answers >= FLOOD.connections, `${sends.path} was asked ${answers} times: that is no flood`)
      beside.push({ what: `${(answers / FLOOD.durationS).toFixed(0)} times ${name} a second`, perSecond })
    }
    const without = (before + (await logins('afterwards'))) / 2
    for (const { what, perSecond } of beside) {
      const share = `${(perSecond / without).toFixed(2)} of the logins beside ${what}`
      findings.expectFigure(perSecond >= LOGINS_SHARE * without, share)
    }
    findings.expect(without > 0, 'without a flood nobody logged in')
    findings.expectRefusals()
    return await end()
  }),
}
