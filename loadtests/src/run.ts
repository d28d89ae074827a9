// Goes through the plans of the scenarios, one measurement at a time, and hands on every result as soon as it is there.
import { setTimeout as sleep } from 'node:timers/promises'
import { machineTime } from '@spillway/local/processes/processor-time'
import { allCores, generatorCores, moveTo } from '../measure/cores.ts'
import type { Measurement, Scenario, Setting } from '../scenarios/scenario.ts'
import type { Progress } from './progress.ts'
import type { Run, ScenarioResult } from './results.ts'

/** Added to a measurement's own estimate: the look at the background, and the pause. */
const BETWEEN_S = 0.5
const PAUSE_MS = 200
const LOOK_FOR_MS = 300

export interface RunOptions {
  scenarios: readonly Scenario[]
  setting: Setting
  repeat: number
  progress: Progress
  signal: AbortSignal
  /** Called after every measurement with all there is so far. */
  keep(results: ScenarioResult[]): void
}

/** Seconds the whole will take, about. */
export function estimateS(scenarios: readonly Scenario[], setting: Setting, repeat: number): number {
  const plans = scenarios.flatMap((scenario) => scenario.plan(setting))
  return repeat * plans.reduce((sum, { estimatedS }) => sum + estimatedS + BETWEEN_S, 0)
}

/**
 * Resolves when everything was measured, or at once after the signal: then a measurement and its processes may still
 * run until this process ends. A failure is a result as well.
 */
export async function runScenarios(options: RunOptions): Promise<void> {
  const { scenarios, setting, repeat, progress, signal, keep } = options
  const results: ScenarioResult[] = []
  const interrupted = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
  for (const scenario of scenarios) {
    const result: ScenarioResult = { name: scenario.name, settings: scenario.settings(setting), runs: [] }
    results.push(result)
    const plan = scenario.plan(setting)
    // All once, then all again: a drift of the machine affects all alike.
    for (let time = 1; time <= repeat; time++) {
      for (const measurement of plan) {
        if (signal.aborted) return
        const { contender, variant, estimatedS } = measurement
        progress.begin(`${scenario.name}: ${contender}, ${variant}`, estimatedS + BETWEEN_S)
        const run = await Promise.race([measureOnce(measurement, time, options), interrupted])
        // A measurement that an interruption broke off is no result.
        if (run === undefined || signal.aborted) return
        progress.end(run.failure)
        result.runs.push(run)
        keep(results)
      }
    }
  }
}

async function measureOnce(measurement: Measurement, repeat: number, options: RunOptions): Promise<Run> {
  place(measurement, options)
  await sleep(PAUSE_MS)
  const backgroundPercent = await backgroundLoad()
  const startMs = performance.now()
  const about = () => ({
    contender: measurement.contender,
    variant: measurement.variant,
    repeat,
    seconds: (performance.now() - startMs) / 1_000,
    ...(backgroundPercent !== undefined && { backgroundPercent }),
  })
  try {
    const { figures = {}, histograms = {}, series = {} } = await measurement.measure()
    return { ...about(), figures, histograms, series }
  } catch (error) {
    const failure = error instanceof Error ? error.message : String(error)
    return { ...about(), figures: {}, histograms: {}, series: {}, failure }
  }
}

/** Moves generator, PostgreSQL and Redis to the cores of this measurement. */
function place({ placement }: Measurement, { setting }: RunOptions): void {
  if (setting.cores === undefined) return
  const together = placement === 'together'
  moveTo(process.pid, together ? allCores : generatorCores)
  for (const { role, pid } of setting.servers) {
    moveTo(pid, together ? allCores : role === 'redis' && placement === 'apart' ? setting.cores : generatorCores)
  }
}

/** Per cent of all processor time that others used or stole while this waited; undefined where it cannot be read. */
async function backgroundLoad(): Promise<number | undefined> {
  const before = machineTime()
  await sleep(LOOK_FOR_MS)
  const after = machineTime()
  if (before === undefined || after === undefined) return undefined
  const used = after.busyMs - before.busyMs + after.stolenMs - before.stolenMs
  const all = used + after.idleMs - before.idleMs
  return all === 0 ? 0 : (100 * used) / all
}
