// The command `pnpm e2e:keda`: Spillway's chart on a real control plane with the real KEDA, all as plain processes.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openKeeper } from '@spillway/local/processes/keeper'
import { report } from '@spillway/local/processes/user-error'
import { outputDir, startEnvironment } from './environment.ts'
import { runScenario } from './scenario/run.ts'
import { predictSpike } from './scenario/spike.ts'
import { createSteps } from './steps.ts'
import { drawTimeline, printTimeline } from './timeline-report.ts'

const drawing = fileURLToPath(new URL('../timeline.svg', import.meta.url))
const startedAt = performance.now()
const keeper = openKeeper()
const steps = createSteps(console.log)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => keeper.close().catch(report))

try {
  const environment = await startEnvironment(keeper, steps, console.log)
  const { timeline, spike } = await runScenario(environment, steps)
  console.log(`\n${printTimeline(timeline)}`)
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
} catch (error) {
  report(error)
  console.error(`The logs: ${join(outputDir, 'logs')}`)
  process.exitCode = 1
} finally {
  await keeper.close()
}
process.exit()
