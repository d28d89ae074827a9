// Closed loops that retry at once, through a gateway and beside an application: a thousand are no
// more to the line than a hundred. The clients follow no ticket and heed no Retry-After.
import { quantile } from '@spillway/infra/rig/quantile'
import { allCores, generatorCores, startRival } from '../../contenders/contender.ts'
import { Findings } from '../findings.ts'
import { type Load, rushLogins, watchNeighbours } from '../one-gateway.ts'
import type { Scenario } from '../scenario.ts'
import { drained } from '../stage/stage.ts'
import { AS_QUICK, type Line, onLine } from './line.ts'

const MOST = 1_000
const LOOPS = [100, 400, MOST]
/** Of the most clients; their median counts. */
const ROUNDS = 3
const credential = 'argon2id'
const POLITE_SHARE = 0.9
/**
 * The most loops wait this many times the hold, so that tickets are given on any machine: as where
 * 108 logins a second were hashed and a request was held for 8 s.
 */
const TIMES_HOLD = 1.16
/** A thrown ticket may be hashed for a hold and ten seconds. */
const DRAINED_MS = 60_000
/** The default of LOGIN_WAIT_MS. */
const HOLD_MS = 8_000
const BESIDE_SHARE = 0.9
const HANDLER_SHARE = 0.8

const LOOP = { durationS: 10, settlingS: 4 }
const POLITE = { settlingMs: 3_000, countedMs: 6_000 }

const BESIDE_LOOP = { durationS: 8, settlingS: 4 }
/** Few enough that nobody is refused. */
const BESIDE_POLITE = { connections: 8, durationS: 7, settlingS: 2 }
const WARM_UP = { ...BESIDE_POLITE, durationS: 4 }
/**
 * A hundred wait some ten seconds in the handler, and no login may be given up. Measured once: it
 * does a third of the others.
 */
const HANDLER = { connections: 100, durationS: 10, settlingS: 4 }
const PATIENT_S = 60

async function loop(...rushed: Parameters<typeof rushLogins>) {
  const { perSecond, tickets, refused } = await rushLogins(...rushed)
  return { perSecond, told: `${perSecond.toFixed(1)} logins/s (${tickets} tickets, ${refused} refused)` }
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
    findings.expectFigure(perSecond >= share * other, `${loops} loops: ${(perSecond / other).toFixed(2)} of ${what}`)
  }
}

const lineLoops: Scenario = {
  name: 'line-loops',
  promise: `Of ${LOOPS.join(', ')} clients that throw their tickets away and retry at once a gateway lets in ${POLITE_SHARE} as many as of polite ones, and a login takes at most ${AS_QUICK} times as long as before once the thrown tickets are over.`,
  alone: true,
  run: onLine(credential, tryLoops, {
    clients: MOST,
    msOf: (perSecond) => Math.min(HOLD_MS, (MOST * 1_000) / perSecond / TIMES_HOLD),
  }),
}

async function tryLoops(line: Line): Promise<Findings> {
  const findings = new Findings()
  const neighbours = await watchNeighbours(line.stage, line.url)
  let before = await line.people().perSecond(LOOPS[0] ?? 0, POLITE)
  /** Of polite clients just before and after it, because machines change their speed. */
  async function ratioOf(connections: number): Promise<number> {
    const load = { url: line.url, credential, connections, ...LOOP } as const
    const { perSecond, told } = await loop(line.stage, load, findings)
    // Tickets that loops threw away are hashed for some seconds: polite clients would wait for them.
    await drained(line.system, DRAINED_MS)
    const after = await line.people().perSecond(connections, POLITE)
    const polite = (before + after) / 2
    before = after
    findings.notes.push(`${connections} loops: ${told}, polite clients ${polite.toFixed(1)}`)
    return perSecond / polite
  }
  for (const loops of LOOPS) {
    const ratios: number[] = []
    for (let round = 0; round < (loops === MOST ? ROUNDS : 1); round++) ratios.push(await ratioOf(loops))
    const median = quantile(ratios, 0.5) ?? 0
    const ratio = `${loops} loops: ${median.toFixed(2)} of polite clients`
    findings.expectFigure(median >= POLITE_SHARE, ratio)
  }
  // Until then a login shares the worker with them, and may wait for a batch.
  await drained(line.system, DRAINED_MS)
  await line.expectCalm(findings, `${MOST} loops`)
  await neighbours.report(findings)
  findings.expect(findings.ticketed + findings.refused > 0, 'everyone was let in at once, so nothing was tried')
  findings.expectAllDefined()
  return findings
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

    /** Runs an application of its own, which hashes as the rival of this name does. */
    async function withApplication<T>(
      name: string,
      run: (rate: (load: Load) => ReturnType<typeof loop>) => Promise<T>,
    ) {
      const running = await startRival(name, { cores, algorithm: 'bcrypt', services })
      const neighbours = await watchNeighbours(stage, running.url)
      try {
        return await run((load) =>
          loop(stage, { url: running.url, credential: 'bcrypt', ...load }, findings, generatorCores),
        )
      } finally {
        findings.notes.push(`${name}:`)
        await neighbours.report(findings)
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
    findings.expectRefusals()
    findings.expectAllDefined()
    return findings
  },
}

export const lineLoopsScenarios: readonly Scenario[] = [lineLoops, lineLoopsBeside]
