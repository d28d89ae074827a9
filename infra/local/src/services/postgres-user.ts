// PostgreSQL refuses to run as root. For root it runs as `nobody`, which exists on every system.
// Data and programs that `nobody` cannot reach (in a home directory of mode 700) are kept outside
// the checkout.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, chown, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import { makeOnce } from './apt-packages.ts'

/** The folder for data and programs when `nobody` cannot enter the checkout. */
const OUTSIDE = '/var/lib/spillway'
const OWNER = '.owner.json'
const PROGRAMS = 'postgresql-'

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

export interface PostgresPlaces {
  /** The folder of its data. */
  home: string
  /** The folder of its programs. */
  binDir: string
}

/**
 * Creates the data folder. Returns the wanted places, or for root those outside the checkout that
 * its user can reach. The programs outside are one copy for all checkouts. What belongs to no
 * checkout any more is deleted.
 */
export async function makePlaces(
  wanted: PostgresPlaces,
  user: PostgresUser,
  say: (sentence: string) => void,
  outside = OUTSIDE,
): Promise<PostgresPlaces> {
  await mkdir(wanted.home, { recursive: true, mode: 0o700 })
  const { uid, gid } = user
  if (uid === undefined || gid === undefined) return wanted
  await chown(wanted.home, uid, gid)
  const mayUseHome = mayUse(wanted.home, user)
  const native = dirname(wanted.binDir)
  const programs = mayUse(wanted.binDir, user) ? undefined : await programsName(native)
  const places = {
    home: mayUseHome ? wanted.home : dataOutside(wanted.home, outside),
    binDir: programs === undefined ? wanted.binDir : join(outside, programs, basename(wanted.binDir)),
  }
  if (mayUseHome && programs === undefined) return places
  await mkdir(outside, { recursive: true })
  // Another user must be able to enter it, whatever the umask.
  await chmod(outside, 0o755)
  // Before the copy: another start deletes programs without an owner.
  const owner = ownerFile(wanted.home, outside)
  await writeFile(`${owner}.new`, JSON.stringify({ home: wanted.home, programs }))
  await rename(`${owner}.new`, owner)
  await removeUnowned(outside)
  if (!mayUseHome) {
    await mkdir(places.home, { recursive: true, mode: 0o700 })
    await chown(places.home, uid, gid)
  }
  if (programs !== undefined) {
    const copy = join(outside, programs)
    await makeOnce(copy, (partial) => cp(native, partial, { recursive: true, verbatimSymlinks: true }))
  }
  say(
    `As root, PostgreSQL runs as nobody, who may not enter this checkout: its ${mayUseHome ? '' : 'data and '}programs are in ${outside}. ` +
      'The next start as root in any checkout deletes there what belongs to no checkout.',
  )
  return places
}

/** Deletes a data folder that makePlaces created. */
export async function removeHome(wanted: string, outside = OUTSIDE): Promise<void> {
  for (const path of [wanted, dataOutside(wanted, outside), ownerFile(wanted, outside)])
    await rm(path, { recursive: true, force: true })
}

/** Deletes data whose checkout is gone, and programs that no checkout uses. */
export async function removeUnowned(outside: string): Promise<void> {
  const used = new Set<string>()
  const entries = await readdir(outside)
  for (const entry of entries.filter((name) => name.endsWith(OWNER))) {
    const { home, programs } = JSON.parse(await readFile(join(outside, entry), 'utf8'))
    if (existsSync(home)) used.add(programs)
    else await removeHome(home, outside)
  }
  const isUnused = (name: string) => name.startsWith(PROGRAMS) && !name.includes('.partial-') && !used.has(name)
  for (const name of entries.filter(isUnused)) await rm(join(outside, name), { recursive: true, force: true })
}

/** One name for each version of the package. */
async function programsName(native: string): Promise<string> {
  const { version }: { version: string } = JSON.parse(await readFile(join(native, '../package.json'), 'utf8'))
  return `${PROGRAMS}${version}`
}

function dataOutside(wanted: string, outside: string): string {
  return join(outside, `data-${createHash('sha256').update(wanted).digest('hex').slice(0, 12)}`)
}

/** The file that names the data folder of the checkout, and the programs that it uses. */
function ownerFile(wanted: string, outside: string): string {
  return `${dataOutside(wanted, outside)}${OWNER}`
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
