// The command `pnpm accounts`.
import { runCommand } from '@spillway/infra/processes/command'
import { accounts } from './command.ts'

await runCommand(async () => {
  process.exitCode = await accounts(process.argv.slice(2), process.env, console)
})
