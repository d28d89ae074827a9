// The command `pnpm --filter @spillway/infra e2e`: Spillway's chart on a real control plane with the real KEDA, all as plain processes.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runWithKeeper } from '@spillway/infra/processes/command'
import { parseCommandLine, positive } from '@spillway/infra/processes/command-line'
import { outputDir, startEnvironment } from './environment.ts'
import { createSteps, runScenario } from './scenario/run.ts'
import { predictSpike, USUAL_TIMES } from './scenario/spike.ts'
import { drawTimeline } from './timeline.ts'

const drawing = fileURLToPath(new URL('../timeline.svg', import.meta.url))
const startedAt = performance.now()
const steps = createSteps(console.log)

const help = `pnpm --filter @spillway/infra e2e [--times N]

  --times N   the spike, of what one worker does [${USUAL_TIMES}]; with another one no picture is drawn
`

await runWithKeeper(async (keeper) => {
  const command = 'pnpm --filter @spillway/infra e2e'
  const { values } = parseCommandLine(command, process.argv.slice(2), { times: { type: 'string' } })
  if (values.help) return console.log(help)
  const times = positive('--times', values.times ?? String(USUAL_TIMES))
  const environment = await startEnvironment(keeper, steps, console.log)
  const { timeline, spike } = await runScenario(environment, steps, times)
  const predicted = predictSpike(spike)
  console.log(
    `\nThe sizing model predicts for this spike: ${Math.round(predicted.deepest)} jobs deep, over after ${predicted.overAfterS.toFixed(1)} s.`,
    `Measured: ${spike.deepest}, ${spike.overAfterS.toFixed(1)} s.`,
  )
  if (times === USUAL_TIMES) writeFileSync(drawing, drawTimeline(timeline))
  const { samples, marks } = timeline
  const result = { steps: steps.results, spike, predicted, samples, marks }
  writeFileSync(join(outputDir, 'result.json'), JSON.stringify(result))
  console.log(
    `\n${steps.results.length} steps in ${Math.round((performance.now() - startedAt) / 1_000)} s${times === USUAL_TIMES ? `; drawn in ${drawing}` : ''}`,
  )
  await environment.close()
})
if (process.exitCode === 1) console.error(`The logs: ${join(outputDir, 'logs')}`)
process.exit()
