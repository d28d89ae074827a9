// The command `pnpm calibrate`: proposes algorithm and cost of new hashes for this machine.
import { runCommand } from '@spillway/local/processes/command'
import { asksForHelp } from '@spillway/local/processes/command-line'
import { readFigures } from '../figures.ts'
import { calibrate, describeCalibration } from './calibrate.ts'
import { readCalibration, usage } from './options.ts'

await runCommand(async () => {
  const args = process.argv.slice(2)
  if (asksForHelp(args)) return console.log(usage)
  console.log(describeCalibration(await calibrate(readCalibration(args), process.env), readFigures()))
})
