// The command `pnpm size`: how many pods, cores, and what else, for this many logins a second.
import { asksForHelp } from '@spillway/local/processes/command-line'
import { report } from '@spillway/local/processes/user-error'
import { describe } from './describe.ts'
import { readFigures } from './figures.ts'
import { readDemand, usage } from './options.ts'
import { size } from './sizing.ts'

try {
  const args = process.argv.slice(2)
  const figures = readFigures()
  if (asksForHelp(args)) console.log(usage)
  else {
    const demand = readDemand(args, figures)
    console.log(describe(demand, size(demand, figures), figures))
  }
} catch (error) {
  report(error)
  process.exitCode = 1
}
