// The command `pnpm seed`: creates accounts in bulk, in the running `pnpm start` or in the system of DATABASE_URL and GATEWAY_URL.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { asksForHelp } from '../processes/command-line.ts'
import { repositoryDir } from '../processes/repository.ts'
import { report, UserError } from '../processes/user-error.ts'
import { readEnvironment } from './environment.ts'
import { findRunning } from './running.ts'

async function seed(args: string[]): Promise<number> {
  const { inherited, stateDir } = readEnvironment(process.env)
  const given = inherited.DATABASE_URL && inherited.GATEWAY_URL
  const env = given || asksForHelp(args) ? inherited : { ...inherited, ...variablesOfRunning(stateDir) }
  const program = join(repositoryDir, 'prisma/dist/seed-program.js')
  if (!existsSync(program)) throw new UserError('Nothing is built yet: run "pnpm build" first.')
  const [code] = await once(spawn(process.execPath, [program, ...args], { env, stdio: 'inherit' }), 'exit')
  return code ?? 1
}

function variablesOfRunning(stateDir: string): NodeJS.ProcessEnv {
  const { databaseUrl, gatewayUrl } = findRunning(stateDir, 'set both DATABASE_URL and GATEWAY_URL')
  return { DATABASE_URL: databaseUrl, GATEWAY_URL: gatewayUrl }
}

process.exitCode = await seed(process.argv.slice(2)).catch((error) => {
  report(error)
  return 1
})
