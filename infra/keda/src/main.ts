// The command `pnpm --filter @spillway/infra e2e`: Spillway's chart on a real control plane with
// the real KEDA; pods are containers of Docker.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runWithKeeper } from '@spillway/infra/processes/command'
import { parseCommandLine, pickNamed, positive } from '@spillway/infra/processes/command-line'
import { outputDir, startEnvironment } from './environment.ts'
import { parts } from './scenario/run.ts'
import { type MeasuredSpike, predictSpike, USUAL_TIMES } from './scenario/spike.ts'
import { openStage } from './scenario/stage.ts'
import { Steps } from './steps.ts'

const command = 'pnpm --filter @spillway/infra e2e'
const help = `${command} [PART...] [--times N]

  PART        ${parts.map(({ name }) => name).join(' ')} [all]
  --times N   the spike, as a multiple of one worker's rate [${USUAL_TIMES}]
`

await runWithKeeper(async (keeper) => {
  const options = { times: { type: 'string' } } as const
  const { values, positionals } = parseCommandLine(command, process.argv.slice(2), options, { allowPositionals: true })
  if (values.help) return console.log(help)
  const times = positive('--times', values.times ?? String(USUAL_TIMES))
  const chosen = pickNamed('part', parts, positionals)
  const startedAt = performance.now()
  const steps = new Steps(console.log)
  const environment = await startEnvironment(keeper, steps, console.log)
  const stage = await openStage(environment)
  let spike: MeasuredSpike | undefined
  for (const { run } of chosen) spike = (await run(stage, steps, times)) ?? spike
  await stage.close()
  const predicted = spike && predictSpike(spike)
  const result = { steps: steps.results, spike, predicted, samples: stage.timeline.samples }
  writeFileSync(join(outputDir, 'result.json'), JSON.stringify(result))
  if (spike && predicted)
    console.log(
      `\nThe sizing model predicts for this spike: ${Math.round(predicted.deepest)} jobs deep, over after ${predicted.overAfterS.toFixed(1)} s.`,
      `Measured: ${spike.deepest}, ${spike.overAfterS.toFixed(1)} s.`,
    )
  console.log(`\n${steps.results.length} steps in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  await environment.close()
})
if (process.exitCode === 1) console.error(`The logs: ${join(outputDir, 'logs')}`)
process.exit()
