// The scenario: each step is a promise of the chart's README, and fails when it is not kept.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { renderChart, valueSetsDir } from '@spillway/helm/chart'
import type { Environment } from '../environment.ts'
import { NAMESPACE, RELEASE } from '../installation.ts'
import type { Timeline } from '../timeline.ts'
import { scheduleSteps } from './schedule.ts'
import { type MeasuredSpike, spikeSteps } from './spike.ts'
import { openStage } from './stage.ts'
import { endingSteps, troubleSteps } from './trouble.ts'
import { twoRedisSteps } from './two-redis.ts'

/** How much of the time before the spike the timeline shows, in seconds. */
const BEFORE_S = 3

/** Runs all steps. The timeline that it returns begins at the spike, and ends when the workers are few again. */
export async function runScenario(
  environment: Environment,
  steps: Steps,
): Promise<{ timeline: Timeline; spike: MeasuredSpike }> {
  await chartSteps(environment, steps)
  const stage = await openStage(environment)
  const spike = await spikeSteps(stage, steps)
  await troubleSteps(stage, steps)
  await scheduleSteps(stage, steps)
  await twoRedisSteps(stage, steps)
  await endingSteps(stage, steps)
  await stage.close()
  return { timeline: cut(stage.timeline, spike), spike }
}

/** The chart as it is installed: the API server accepts it, and its own tests pass. */
async function chartSteps({ kubectl, helm }: Environment, { step }: Steps): Promise<void> {
  await step('the API server takes every object of every value set', async () => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    await kubectl.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'rehearsal', labels } })
    let objects = 0
    for (const file of await readdir(valueSetsDir)) {
      const valueFiles = [join(valueSetsDir, file)]
      const yaml = await renderChart({ helm, release: 'rehearsal', namespace: 'rehearsal', valueFiles })
      objects += (await kubectl.dryRun(yaml, 'rehearsal')).length
    }
    return `${objects} objects`
  })

  await step('helm test: a login succeeds, the scaler watches a queue, a job shows in it', async () => {
    const report = await kubectl.helm('test', RELEASE, '--namespace', NAMESPACE, '--timeout', '1m')
    return `${report.match(/Phase:\s+Succeeded/g)?.length} tests`
  })
}

/** The part of a timeline around a spike, from whose start its seconds are counted. */
function cut(timeline: Timeline, { atS: startS, endS }: MeasuredSpike): Timeline {
  const within = <T extends { atS: number }>(all: T[]): T[] =>
    all.filter(({ atS }) => atS >= startS - BEFORE_S && atS <= endS).map((one) => ({ ...one, atS: one.atS - startS }))
  return { ...timeline, samples: within(timeline.samples), marks: within(timeline.marks) }
}

// Named steps, each reported with its time as it ends.

export type Steps = ReturnType<typeof createSteps>

export function createSteps(say: (line: string) => void) {
  /** The note is what was measured, in a few words. */
  const results: { name: string; seconds: number; note: string | undefined }[] = []
  let fail: (error: Error) => void = () => {}
  const failed = new Promise<never>((_resolve, reject) => {
    fail = reject
  })
  failed.catch(() => undefined)
  return {
    results,
    /** Ends the current step, or the next one, with this error. */
    fail: (error: Error) => fail(error),
    /** Runs a step and resolves to its result, which is reported with its name if it is a text. Rejects as the step does. */
    async step<T>(name: string, run: () => Promise<T>): Promise<T> {
      const startedAt = performance.now()
      const seconds = (): number => Math.round((performance.now() - startedAt) / 100) / 10
      try {
        const result = await Promise.race([run(), failed])
        const note = typeof result === 'string' ? result : undefined
        results.push({ name, seconds: seconds(), note })
        say(`✔ ${name} (${seconds()} s)${note === undefined ? '' : `: ${note}`}`)
        return result
      } catch (error) {
        say(`✖ ${name} (${seconds()} s)`)
        throw error
      }
    },
  }
}
