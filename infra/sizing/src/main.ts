// The command `pnpm size`: how many pods, cores, and what else, for this many logins a second.
import { report } from '@spillway/local/processes/user-error'
import { describe } from './describe.ts'
import { readFigures } from './figures.ts'
import { readDemand } from './options.ts'
import { size } from './sizing.ts'

try {
  const figures = readFigures()
  const demand = readDemand(process.argv.slice(2), figures)
  console.log(describe(demand, size(demand, figures), figures))
} catch (error) {
  report(error)
  process.exitCode = 1
}
