// Runs what can be measured, one measurement at a time, and hands each on.

import { setTimeout as sleep } from 'node:timers/promises'
import { backgroundLoad, moveTo } from '@spillway/infra/processes/processor-time'
import { allCores, generatorCores } from '../contenders/contender.ts'
import { engines, idle } from '../scenarios/bare-hash.ts'
import { login100, stress5000 } from '../scenarios/crowds.ts'
import { ramp } from '../scenarios/ramp.ts'
import type { Measurement, Scenario, Setting } from '../scenarios/scenario.ts'
import { spike } from '../scenarios/spike.ts'
import type { Run, ScenarioResult } from './results.ts'

/** In the order of the report. */
export const scenarios: readonly Scenario[] = [login100, stress5000, ramp, spike, idle, engines]

const PAUSE_MS = 200
const LOOK_FOR_MS = 300

export interface RunOptions {
  scenarios: readonly Scenario[]
  /** Without a duration, each scenario has its own. */
  setting: Omit<Setting, 'durationS'> & { durationS: number | undefined }
  repeat: number
  say(line: string): void
  signal: AbortSignal
  /** Called after every measurement with all there is so far. */
  keep(results: ScenarioResult[]): void
}

/**
 * Resolves when everything was measured, or at the signal: then a measurement may still run until
 * this process ends. A failure is a result as well.
 */
export async function runScenarios(options: RunOptions): Promise<void> {
  const { scenarios, repeat, say, signal, keep } = options
  const results: ScenarioResult[] = []
  const plans = scenarios.map((scenario) => {
    const setting = { ...options.setting, durationS: options.setting.durationS ?? scenario.durationS }
    const settings = { seconds: setting.durationS, ...scenario.settings(setting) }
    return { name: scenario.name, settings, plan: scenario.plan(setting) }
  })
  const count = repeat * plans.reduce((sum, { plan }) => sum + plan.length, 0)
  let begun = 0
  const interrupted = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
  for (const { name, settings, plan } of plans) {
    const result: ScenarioResult = { name, settings, runs: [] }
    results.push(result)
    // All once, then all again: a drift of the machine affects all alike.
    for (let time = 1; time <= repeat; time++) {
      for (const measurement of plan) {
        if (signal.aborted) return
        begun++
        say(`${begun} of ${count}  ${name}: ${measurement.contender}, ${measurement.variant}`)
        const run = await Promise.race([measureOnce(measurement, options), interrupted])
        // A measurement that an interruption broke off is no result.
        if (run === undefined || signal.aborted) return
        if (run.failure !== undefined) say(`  ${run.failure}`)
        result.runs.push(run)
        keep(results)
      }
    }
  }
}

async function measureOnce(measurement: Measurement, options: RunOptions): Promise<Run> {
  place(measurement, options)
  await sleep(PAUSE_MS)
  const backgroundPercent = await backgroundLoad(LOOK_FOR_MS)
  const { contender, variant } = measurement
  const about = { contender, variant, ...(backgroundPercent && { backgroundPercent }) }
  try {
    return { ...about, figures: {}, ...(await measurement.measure()) }
  } catch (error) {
    const failure = error instanceof Error ? error.message : String(error)
    return { ...about, figures: {}, failure }
  }
}

/** Moves generator, PostgreSQL and Redis to the cores of this measurement. */
function place({ placement }: Measurement, { setting }: RunOptions): void {
  if (setting.cores === undefined) return
  const together = placement === 'together'
  moveTo(process.pid, together ? allCores : generatorCores)
  for (const { role, pid } of setting.servers) {
    moveTo(pid, together ? allCores : role === 'redis' ? setting.cores : generatorCores)
  }
}
