// PostgreSQL refuses to run as root. For root it runs as `nobody`, which exists on every system. Data and programs that `nobody` cannot
// reach (in a home directory of mode 700) are kept outside the checkout.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, chown, cp, mkdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import { makeOnce } from './apt-packages.ts'

/** The folder for data and programs when `nobody` cannot enter the checkout. */
const sharedDir = '/var/lib/spillway'

export interface PostgresUser {
  /** Only for root: the user to run PostgreSQL as. */
  uid?: number
  gid?: number
}

/** The user of PostgreSQL: the user of this process, or `nobody` for root. */
export function postgresUser(): PostgresUser {
  if (process.getuid?.() !== 0) return {}
  try {
    const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' })))
    if (uid === undefined || gid === undefined) throw new Error('id said nothing')
    const { error } = spawnSync('/bin/sh', ['-c', ':'], { uid, gid, cwd: '/' })
    if (error) throw error
    return { uid, gid }
  } catch (cause) {
    throw new UserError(
      'PostgreSQL refuses to run as root, and this root cannot run it as the user nobody: ' +
        'use a user that is not root, or set DATABASE_URL to a PostgreSQL of your own.',
      { cause },
    )
  }
}

/** Creates the data folder and returns its path: the wanted one, or one outside the checkout if PostgreSQL's user cannot reach that. */
export async function makeHome(wanted: string, user: PostgresUser, say: (sentence: string) => void): Promise<string> {
  await mkdir(wanted, { recursive: true, mode: 0o700 })
  if (user.uid === undefined || user.gid === undefined) return wanted
  await chown(wanted, user.uid, user.gid)
  if (mayUse(wanted, user)) return wanted
  const elsewhere = homeElsewhere(wanted)
  say(`As root, PostgreSQL runs as nobody, who may not enter ${wanted}: its data is in ${elsewhere}.`)
  await makeSharedDir()
  await mkdir(elsewhere, { recursive: true, mode: 0o700 })
  await chown(elsewhere, user.uid, user.gid)
  return elsewhere
}

/** Deletes a folder that makeHome created. */
export async function removeHome(wanted: string): Promise<void> {
  for (const dir of [wanted, homeElsewhere(wanted)]) await rm(dir, { recursive: true, force: true })
}

/** The folder of programs that the user can reach: the installed one, or for root a copy outside the checkout. */
export async function reachablePrograms(binDir: string, user: PostgresUser): Promise<string> {
  if (user.uid === undefined || mayUse(binDir, user)) return binDir
  const native = dirname(binDir)
  const copy = join(sharedDir, `postgresql-${createHash('sha256').update(native).digest('hex').slice(0, 12)}`)
  await makeSharedDir()
  await makeOnce(copy, (partial) => cp(native, partial, { recursive: true, verbatimSymlinks: true }))
  return join(copy, basename(binDir))
}

/** The mode is set explicitly, because another user must be able to enter, whatever the umask. */
async function makeSharedDir(): Promise<void> {
  await mkdir(sharedDir, { recursive: true })
  await chmod(sharedDir, 0o755)
}

function homeElsewhere(wanted: string): string {
  return join(sharedDir, `data-${createHash('sha256').update(wanted).digest('hex').slice(0, 12)}`)
}

/** Whether a user may enter a folder and all of its parents. */
function mayUse(dir: string, { uid, gid }: PostgresUser): boolean {
  const asked = spawnSync('/bin/sh', ['-c', 'test -x "$0"', dir], {
    cwd: '/',
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  })
  return asked.status === 0
}
