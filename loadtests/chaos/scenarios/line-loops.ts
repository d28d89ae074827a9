// Closed loops that retry at once, as the tools that everybody takes: a thousand of them are no more than a hundred to the line, through a
// gateway and beside an application. Their clients follow no ticket and heed no Retry-After.
import { quantile } from '@spillway/infra/rig/quantile'
import { startRival } from '../../contenders/contender.ts'
import { allCores, contenderCores, generatorCores } from '../../measure/cores.ts'
import { Findings } from '../findings.ts'
import { answersOf, isOk, rush, watchNeighbours } from '../one-gateway.ts'
import type { RushOptions } from '../rush.ts'
import type { Scenario } from '../scenario.ts'
import type { Stage } from '../stage/stage.ts'
import { AS_QUICK, onLine } from './line.ts'

const LOOPS = [100, 400, 1_000]
/** Of the most clients; their median counts. */
const ROUNDS = 3
const credential = 'argon2id'
const POLITE_SHARE = 0.9
const BESIDE_SHARE = 0.9
const HANDLER_SHARE = 0.8

const LOOP = { durationS: 10, settlingS: 4 }
const POLITE = { settlingMs: 3_000, countedMs: 6_000 }

const BESIDE_LOOP = { durationS: 8, settlingS: 4 }
/** Few enough that nobody is refused. */
const BESIDE_POLITE = { connections: 8, durationS: 7, settlingS: 2 }
const WARM_UP = { ...BESIDE_POLITE, durationS: 4 }
/**
 * In the handler a hundred wait for some ten seconds: no login may be given up, whose hash would be for nobody. Measured once: it does a third
 * of what is compared.
 */
const HANDLER = { connections: 100, durationS: 10, settlingS: 4 }
const PATIENT_S = 60

/** Verdicts a second of a loop; what is no verdict, ticket or refusal has failed. */
async function loop(stage: Stage, options: RushOptions, findings: Findings, cores = contenderCores) {
  const { statuses, timeouts, errors } = await rush(stage, options, cores)
  const { 200: ok = 0, 401: no = 0, 202: tickets = 0, 429: limited = 0, 503: busy = 0 } = statuses
  findings.requests += answersOf(statuses) + timeouts + errors
  findings.succeeded += ok + no
  findings.ticketed += tickets
  findings.refused += busy + limited
  findings.failed += answersOf(statuses) - ok - no - tickets - busy - limited + timeouts + errors
  const perSecond = (ok + no) / (options.durationS - options.settlingS)
  return { perSecond, told: `${perSecond.toFixed(1)} logins/s (${tickets} tickets, ${busy + limited} refused)` }
}

interface Rate {
  loops: number
  perSecond: number
  told: string
}

/** Each loop is compared with what was measured before and after all of them. */
function compare(findings: Findings, rates: readonly Rate[], what: string, others: readonly number[], share: number) {
  const other = others.reduce((sum, each) => sum + each, 0) / others.length
  findings.notes.push(`${what} ${others.map((each) => each.toFixed(1)).join(' and ')} logins/s`)
  for (const { loops, perSecond } of rates) {
    const ratio = `${(perSecond / other).toFixed(2)} of ${what}`
    findings.notes.push(`${loops} loops: ${ratio}`)
    findings.expect(perSecond >= share * other, `${loops} loops that retry at once: ${ratio}`)
  }
}

const lineLoops: Scenario = {
  name: 'line-loops',
  promise: `Of ${LOOPS.join(', ')} clients that throw their tickets away and retry at once a gateway lets in ${POLITE_SHARE} as many as of polite ones, and two seconds later a login takes at most ${AS_QUICK} times as long as before.`,
  alone: true,
  run: onLine(credential, async (line) => {
    const findings = new Findings()
    const watched = await watchNeighbours(line.stage, { '/healthz': () => isOk(line.url, '/healthz') })
    let before = await line.people().perSecond(LOOPS[0] ?? 0, POLITE)
    /** Of polite clients just before and after it, because machines change their speed. */
    async function ratioOf(connections: number): Promise<number> {
      const sends = { credential } as const
      const { perSecond, told } = await loop(line.stage, { url: line.url, sends, connections, ...LOOP }, findings)
      const after = await line.people().perSecond(connections, POLITE)
      const polite = (before + after) / 2
      before = after
      findings.notes.push(`${connections} loops: ${told}, polite clients ${polite.toFixed(1)}`)
      return perSecond / polite
    }
    for (const loops of LOOPS) {
      const ratios: number[] = []
      for (let round = 0; round < (loops === LOOPS.at(-1) ? ROUNDS : 1); round++) ratios.push(await ratioOf(loops))
      const median = quantile(ratios, 0.5) ?? 0
      const ratio = `${loops} loops: ${median.toFixed(2)} of polite clients`
      findings.notes.push(ratio)
      findings.expect(median >= POLITE_SHARE, ratio)
    }
    await line.expectCalm(findings, `${LOOPS.at(-1)} loops`)
    const neighbours = await watched()
    neighbours.report(findings)
    findings.expect(findings.ticketed + findings.refused > 0, 'everyone was let in at once, so nothing was tried')
    findings.expect(findings.failed === 0, `${findings.failed} requests got no verdict, ticket or refusal`)
    return findings
  }),
}

const lineLoopsBeside: Scenario = {
  name: 'line-loops-beside',
  promise: `An application on one core that hashes beside itself lets in ${HANDLER_SHARE} as many of ${LOOPS.join(', ')} clients that retry at once as with bcrypt in its handler, and ${BESIDE_SHARE} as many as of polite ones.`,
  alone: true,
  async run(stage) {
    const findings = new Findings()
    await stage.accounts.seed('bcrypt')
    const cores = allCores.slice(-1)
    const services = { databaseUrl: stage.postgres.url, redisUrl: '' }
    const sends = { credential: 'bcrypt' } as const

    /** Runs an application of its own, which hashes as the rival of this name does. */
    async function withApplication<T>(
      name: string,
      run: (rate: (load: Load) => ReturnType<typeof loop>) => Promise<T>,
    ) {
      const running = await startRival(name, { cores, algorithm: 'bcrypt', services })
      const watched = await watchNeighbours(stage, { '/healthz': () => isOk(running.url, '/healthz') })
      try {
        return await run((load) => loop(stage, { url: running.url, sends, ...load }, findings, generatorCores))
      } finally {
        const neighbours = await watched()
        findings.notes.push(`${name}:`)
        neighbours.report(findings)
        await running.close()
      }
    }

    const handler = await withApplication('in-process', (rate) => rate({ ...HANDLER, timeoutS: PATIENT_S }))
    const rates: Rate[] = []
    const polite = await withApplication('beside', async (rate) => {
      await rate(WARM_UP)
      const before = (await rate(BESIDE_POLITE)).perSecond
      for (const loops of LOOPS) {
        const measured = await rate({ ...BESIDE_LOOP, connections: loops })
        rates.push({ loops, ...measured })
        findings.notes.push(`${loops} loops: ${measured.told}`)
      }
      return [before, (await rate(BESIDE_POLITE)).perSecond]
    })
    compare(findings, rates, 'polite clients', polite, BESIDE_SHARE)
    compare(findings, rates, 'bcrypt in the handler', [handler.perSecond], HANDLER_SHARE)
    findings.expect(findings.refused > 0, 'nothing was refused, so nothing was tried')
    findings.expect(findings.failed === 0, `${findings.failed} requests got no verdict or refusal`)
    return findings
  },
}

type Load = Omit<RushOptions, 'url' | 'sends'>

export const lineLoopsScenarios: readonly Scenario[] = [lineLoops, lineLoopsBeside]
