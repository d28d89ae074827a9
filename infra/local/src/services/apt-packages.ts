// Programs from the packages of Debian and Ubuntu, unpacked into a folder: apt works on lists and a
// cache of its own. It needs no root, and nothing is installed.
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Keeper } from '../processes/keeper.ts'
import { programsDir } from '../processes/repository.ts'
import { onPath } from '../processes/run.ts'

export interface AptProgram {
  command: string
  env: NodeJS.ProcessEnv
}

interface AptRequest {
  keeper: Keeper
  /** The folder of all fetched programs, kept between runs [the ignored one]. */
  programsDir?: string
  /** The name of its folder there. */
  name: string
  /** The first of these packages that exists is unpacked, of several words with all of them. */
  packages: string[]
  /** What dpkg has installed [of this system]. */
  statusFile?: string
  /** The program, under the first of these names that the package has. */
  commands: string[]
  announce: () => void
}

/** An unpacked program that runs here, fetched at the first call. Undefined without apt. */
export async function aptProgram(request: AptRequest): Promise<AptProgram | undefined> {
  if (onPath(['apt-get']) === undefined || onPath(['dpkg-deb']) === undefined) return undefined
  const home = homeOf(request.name, request.programsDir)
  if (!existsSync(home)) request.announce()
  await makeOnce(home, (partial) => fetchPackage(request, partial))
  const program = await unpacked(request, home)
  if (program === undefined)
    throw new Error(`${home} holds no ${request.commands.join(' or ')}: delete it and try again`)
  return program
}

export function isUnpacked(name: string): boolean {
  return existsSync(homeOf(name))
}

function homeOf(name: string, dir = programsDir): string {
  return join(dir, `${name}-apt-${process.arch}`)
}

async function unpacked({ keeper, commands }: AptRequest, home: string): Promise<AptProgram | undefined> {
  const command = onPath(commands, [join(home, 'usr/bin')])
  if (command === undefined) return undefined
  const libDir = join(home, 'usr/lib')
  const multiarch = existsSync(libDir) ? (await readdir(libDir)).map((entry) => join(libDir, entry)) : []
  const env = { LD_LIBRARY_PATH: [libDir, ...multiarch].join(':') }
  await keeper.run({ command, args: ['--version'], env: { ...process.env, ...env } })
  return { command, env }
}

async function fetchPackage(request: AptRequest, root: string): Promise<void> {
  const own = await mkdtemp(join(tmpdir(), 'spillway-apt-'))
  const archives = join(own, 'cache/archives')
  try {
    for (const dir of [join(own, 'state/lists/partial'), join(archives, 'partial')]) {
      await mkdir(dir, { recursive: true })
    }
    await download(request, own)
    for (const file of (await readdir(archives)).filter((name) => name.endsWith('.deb'))) {
      await request.keeper.run({ command: 'dpkg-deb', args: ['-x', join(archives, file), root] })
    }
    if ((await unpacked(request, root)) === undefined) {
      const [command] = request.commands
      throw new Error(
        `the packages that apt-get has contain no ${request.commands.join(' or ')}: ` +
          `if ${command} is installed, add its folder to the PATH ("dpkg --search ${command}" names it)`,
      )
    }
  } finally {
    await rm(own, { recursive: true, force: true })
  }
}

async function download(
  { keeper, packages, statusFile = '/var/lib/dpkg/status' }: AptRequest,
  own: string,
): Promise<void> {
  const settings = [
    `Dir::State=${join(own, 'state')}`,
    // Installed packages are read from the system, without locking, because nothing is installed.
    `Dir::State::status=${statusFile}`,
    'Debug::NoLocking=1',
    `Dir::Cache=${join(own, 'cache')}`,
    // As root, apt would download as a user that may not write here.
    'APT::Sandbox::User=root',
    'Acquire::Languages=none',
    'Acquire::http::Timeout=20',
    'Acquire::https::Timeout=20',
  ].flatMap((setting) => ['-o', setting])
  const apt = (...args: string[]) =>
    keeper.run({ command: 'apt-get', args: ['-q', '-y', ...settings, ...args], env: { ...process.env, LC_ALL: 'C' } })
  const failures: unknown[] = []
  // Of several sources one may be unreachable: it matters only if the package is not found.
  await apt('update').catch((error) => failures.push(error))
  for (const names of packages) {
    try {
      // An installed package is downloaded too: its program may be missing, or not on the PATH.
      await apt('--download-only', '--no-install-recommends', '--reinstall', 'install', ...names.split(' '))
      return
    } catch (error) {
      failures.push(error)
    }
  }
  throw failures[0]
}

/** Fills it under another name and renames it: of two runs one wins, neither sees half of it. */
export async function makeOnce(dir: string, fill: (partial: string) => Promise<unknown>): Promise<void> {
  if (existsSync(dir)) return
  await mkdir(dirname(dir), { recursive: true })
  const partial = await mkdtemp(`${dir}.partial-`)
  try {
    await fill(partial)
    // Other users may enter it.
    await chmod(partial, 0o755)
    await rename(partial, dir).catch((error: unknown) => {
      if (!existsSync(dir)) throw error
    })
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
}
