// The command `pnpm --filter @spillway/infra e2e`: Spillway's chart on a real control plane with
// the real KEDA; pods are containers of Docker.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runWithKeeper } from '@spillway/infra/processes/command'
import { parseCommandLine, positive } from '@spillway/infra/processes/command-line'
import { outputDir, startEnvironment } from './environment.ts'
import { runScenario } from './scenario/run.ts'
import { predictSpike, USUAL_TIMES } from './scenario/spike.ts'
import { Steps } from './steps.ts'

const command = 'pnpm --filter @spillway/infra e2e'
const help = `${command} [--times N]

  --times N   the spike, as a multiple of one worker's rate [${USUAL_TIMES}]
`

await runWithKeeper(async (keeper) => {
  const { values } = parseCommandLine(command, process.argv.slice(2), { times: { type: 'string' } })
  if (values.help) return console.log(help)
  const times = positive('--times', values.times ?? String(USUAL_TIMES))
  const startedAt = performance.now()
  const steps = new Steps(console.log)
  const environment = await startEnvironment(keeper, steps, console.log)
  const { samples, spike } = await runScenario(environment, steps, times)
  const predicted = predictSpike(spike)
  const result = { steps: steps.results, spike, predicted, samples }
  writeFileSync(join(outputDir, 'result.json'), JSON.stringify(result))
  console.log(
    `\nThe sizing model predicts for this spike: ${Math.round(predicted.deepest)} jobs deep, over after ${predicted.overAfterS.toFixed(1)} s.`,
    `Measured: ${spike.deepest}, ${spike.overAfterS.toFixed(1)} s.`,
  )
  console.log(`\n${steps.results.length} steps in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  await environment.close()
})
if (process.exitCode === 1) console.error(`The logs: ${join(outputDir, 'logs')}`)
process.exit()
