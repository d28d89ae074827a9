// The command `pnpm size`: the size of an installation for a number of logins a second.
import { runCommand } from '@spillway/local/processes/command'
import { asksForHelp } from '@spillway/local/processes/command-line'
import { describe } from './describe.ts'
import { readFigures } from './figures.ts'
import { readDemand, usage } from './options.ts'
import { size } from './sizing.ts'

await runCommand(() => {
  const args = process.argv.slice(2)
  if (asksForHelp(args)) return console.log(usage)
  const figures = readFigures()
  const demand = readDemand(args, figures)
  console.log(describe(demand, size(demand, figures), figures))
})
