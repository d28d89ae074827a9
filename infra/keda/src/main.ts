// The command `pnpm --filter @spillway/keda e2e`: Spillway's chart on a real control plane with the real KEDA, all as plain processes.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runWithKeeper } from '@spillway/local/processes/command'
import { drawTimeline } from './draw-timeline.ts'
import { outputDir, startEnvironment } from './environment.ts'
import { createSteps, runScenario } from './scenario/run.ts'
import { predictSpike } from './scenario/spike.ts'

const drawing = fileURLToPath(new URL('../timeline.svg', import.meta.url))
const startedAt = performance.now()
const steps = createSteps(console.log)

await runWithKeeper(async (keeper) => {
  const environment = await startEnvironment(keeper, steps, console.log)
  const { timeline, spike } = await runScenario(environment, steps)
  const predicted = predictSpike(spike)
  console.log(
    `\nThe sizing model predicts for this spike: ${Math.round(predicted.deepest)} jobs deep, over after ${predicted.overAfterS.toFixed(1)} s.`,
    `Measured: ${spike.deepest}, ${spike.overAfterS.toFixed(1)} s.`,
  )
  writeFileSync(drawing, drawTimeline(timeline))
  const { samples, marks } = timeline
  const result = { steps: steps.results, spike, predicted, samples, marks }
  writeFileSync(join(outputDir, 'result.json'), JSON.stringify(result))
  console.log(
    `\n${steps.results.length} steps in ${Math.round((performance.now() - startedAt) / 1_000)} s; drawn in ${drawing}`,
  )
  await environment.close()
})
if (process.exitCode === 1) console.error(`The logs: ${join(outputDir, 'logs')}`)
process.exit()
