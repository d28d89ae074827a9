// The command `pnpm e2e:keda`: Spillway's chart on a real control plane with the real KEDA, all as plain processes.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openKeeper } from '@spillway/local/processes/keeper'
import { defaultStateDir } from '@spillway/local/processes/repository'
import { report } from '@spillway/local/processes/user-error'
import { type Environment, startEnvironment } from './environment.ts'
import { predictSpike } from './prediction.ts'
import { runScenario } from './scenario.ts'
import { createSteps } from './steps.ts'
import { drawTimeline } from './timeline-svg.ts'
import { printTimeline } from './timeline-text.ts'

const drawing = fileURLToPath(new URL('../timeline.svg', import.meta.url))
const startedAt = performance.now()
const keeper = openKeeper()
const steps = createSteps(console.log)
let environment: Environment | undefined
const stop = (): void => {
  keeper.close().catch(report)
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)

try {
  environment = await startEnvironment(keeper, steps, console.log)
  const { timeline, spike } = await runScenario(environment, steps)
  console.log(`\n${printTimeline(timeline)}`)
  const predicted = predictSpike(spike)
  console.log(
    `\nThe sizing model says of this spike: ${Math.round(predicted.deepest)} jobs deep, over after ${predicted.overAfterS.toFixed(1)} s.`,
    `It was: ${spike.deepest}, ${spike.overAfterS.toFixed(1)} s.`,
  )
  writeFileSync(drawing, drawTimeline(timeline))
  const dir = join(defaultStateDir, 'e2e')
  mkdirSync(dir, { recursive: true })
  writeFileSync(
    join(dir, 'result.json'),
    JSON.stringify({ steps: steps.results, spike, predicted, samples: timeline.samples, marks: timeline.marks }),
  )
  console.log(
    `\n${steps.results.length} steps in ${Math.round((performance.now() - startedAt) / 1_000)} s; drawn in ${drawing}`,
  )
  await environment.close()
} catch (error) {
  report(error)
  console.error(`The logs: ${join(defaultStateDir, 'e2e', 'logs')}`)
  process.exitCode = 1
} finally {
  await keeper.close()
}
process.exit()
