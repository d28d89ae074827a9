// The command `pnpm seed`: creates accounts in bulk, in the running `pnpm start` or in the system of DATABASE_URL and GATEWAY_URL.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { asksForHelp } from '../processes/command-line.ts'
import { repositoryDir } from '../processes/repository.ts'
import { report, UserError } from '../processes/user-error.ts'
import { readEnvironment } from './environment.ts'
import { isHeld } from './lock.ts'

async function seed(args: string[]): Promise<number> {
  const { inherited, stateDir } = readEnvironment(process.env)
  const given = inherited.DATABASE_URL && inherited.GATEWAY_URL
  const env = given || asksForHelp(args) ? inherited : { ...inherited, ...findRunning(stateDir) }
  const program = join(repositoryDir, 'prisma/dist/seed-program.js')
  if (!existsSync(program)) throw new UserError('Nothing is built yet: run "pnpm build" first.')
  const [code] = await once(spawn(process.execPath, [program, ...args], { env, stdio: 'inherit' }), 'exit')
  return code ?? 1
}

/** The URLs of the gateway and the database of the running `pnpm start`, as variables. */
function findRunning(stateDir: string): { DATABASE_URL: string; GATEWAY_URL: string } {
  const nothing = 'Nothing runs to be seeded: run "pnpm start" first, or set both DATABASE_URL and GATEWAY_URL.'
  if (!isHeld(join(stateDir, 'start.lock'))) throw new UserError(nothing)
  try {
    const { databaseUrl, gatewayUrl } = JSON.parse(readFileSync(join(stateDir, 'running.json'), 'utf8'))
    return { DATABASE_URL: String(databaseUrl), GATEWAY_URL: String(gatewayUrl) }
  } catch (cause) {
    throw new UserError('"pnpm start" is not ready yet: wait until it has printed where things listen.', { cause })
  }
}

process.exitCode = await seed(process.argv.slice(2)).catch((error) => {
  report(error)
  return 1
})
