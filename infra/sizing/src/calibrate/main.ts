// The command `pnpm calibrate`: proposes algorithm and cost of new hashes for this machine.
import { runCommand } from '@spillway/local/processes/command'
import { readFigures } from '../figures.ts'
import { calibrate, describeCalibration } from './calibrate.ts'
import { readCalibration, usage } from './options.ts'

await runCommand(async () => {
  const options = readCalibration(process.argv.slice(2))
  if (options === undefined) return console.log(usage)
  console.log(describeCalibration(await calibrate(options, process.env), readFigures()))
})
