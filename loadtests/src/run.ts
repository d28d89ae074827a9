// What can be measured, one measurement at a time.
import { setTimeout as sleep } from 'node:timers/promises'
import { backgroundLoad } from '../measure/background-load.ts'
import { engines, idle } from '../scenarios/bare-hash.ts'
import { cost } from '../scenarios/cost.ts'
import { login100, stress5000 } from '../scenarios/crowds.ts'
import type { Measurement, Scenario, Setting } from '../scenarios/scenario.ts'
import { spike } from '../scenarios/spike.ts'
import type { Run, Runs } from './results.ts'

/** In the order of the report. */
export const scenarios: readonly Scenario[] = [login100, stress5000, spike, idle, cost, engines]

const PAUSE_MS = 200
const LOOK_FOR_MS = 300

/** Measures one after the other, until all is done or at the signal. A failure is a result, too. */
export async function runScenarios(
  chosen: readonly Scenario[],
  setting: Setting,
  { repeat, scenarios: results }: Runs,
  signal: AbortSignal,
): Promise<void> {
  const plans = chosen.map(({ name, plan }) => ({ result: { name, runs: [] as Run[] }, plan: plan(setting) }))
  const count = repeat * plans.reduce((sum, { plan }) => sum + plan.length, 0)
  let begun = 0
  const interrupted = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
  for (const { result, plan } of plans) {
    results.push(result)
    // All once, then all again: a drift of the machine affects all alike.
    for (let time = 1; time <= repeat; time++) {
      for (const measurement of plan) {
        if (signal.aborted) return
        const { contender, variant } = measurement
        console.log(`${++begun} of ${count}  ${result.name}: ${contender}, ${variant}`)
        const run = await Promise.race([measureOnce(measurement), interrupted])
        // A measurement that an interruption broke off is no result.
        if (run === undefined || signal.aborted) return
        if (run.failure !== undefined) console.log(`  ${run.failure}`)
        result.runs.push(run)
      }
    }
  }
}

async function measureOnce({ contender, variant, measure }: Measurement): Promise<Run> {
  await sleep(PAUSE_MS)
  const about = { contender, variant, backgroundPercent: await backgroundLoad(LOOK_FOR_MS) }
  try {
    return { ...about, ...(await measure()) }
  } catch (error) {
    return { ...about, figures: {}, failure: error instanceof Error ? error.message : String(error) }
  }
}
