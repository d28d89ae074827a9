// The command `pnpm breached`.
import { runCommand } from '@spillway/local/processes/command'
import { breached } from './command.ts'

await runCommand(() => breached(process.argv.slice(2), console.log))
