// What is shown: each step is a promise of the chart's README, and fails when it is not kept.
import type { Environment } from './environment.ts'
import { showChart } from './scenario/chart.ts'
import { showEndings } from './scenario/endings.ts'
import { type MeasuredSpike, showSpike } from './scenario/spike.ts'
import { openStage } from './scenario/stage.ts'
import { showTrouble } from './scenario/trouble.ts'
import type { Steps } from './steps.ts'
import type { Timeline } from './timeline.ts'

/** How much is shown of the time before the spike, in seconds. */
const BEFORE_S = 3

/** Runs all steps and gives the timeline of the spike, whose start is its 0, until the workers are few again. */
export async function runScenario(
  environment: Environment,
  steps: Steps,
): Promise<{ timeline: Timeline; spike: MeasuredSpike }> {
  await showChart(environment, steps)
  const stage = await openStage(environment)
  const spike = await showSpike(stage, steps)
  await showTrouble(stage, steps)
  await showEndings(stage, steps)
  await stage.close()
  return { timeline: cut(stage.timeline, spike), spike }
}

/** The part of a timeline around a spike, from whose start its seconds are counted. */
function cut(timeline: Timeline, { atS: startS, endS }: MeasuredSpike): Timeline {
  const within = <T extends { atS: number }>(all: T[]): T[] =>
    all.filter(({ atS }) => atS >= startS - BEFORE_S && atS <= endS).map((one) => ({ ...one, atS: one.atS - startS }))
  return { ...timeline, samples: within(timeline.samples), marks: within(timeline.marks) }
}
