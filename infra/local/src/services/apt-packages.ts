// Programs from the packages of Debian and Ubuntu, without installing them: apt works on lists and a cache of its own, and
// the packages are unpacked into a folder. Needs no root and changes nothing outside that folder.
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Keeper } from '../processes/keeper.ts'
import { onPath } from './on-path.ts'

export interface AptProgram {
  command: string
  /** What its environment must hold, so that it finds its libraries. */
  env: NodeJS.ProcessEnv
}

export interface AptRequest {
  keeper: Keeper
  /** Where what is fetched goes; kept for the next time. */
  programsDir: string
  /** The name of its folder there. */
  name: string
  /** Packages of which the first that exists will do. */
  packages: string[]
  /** Names of the program wanted, of which the first that was unpacked will do. */
  commands: string[]
  /** Told before anything is fetched. */
  announce: () => void
}

/** Whether this system has what is needed to fetch and unpack packages. */
export function hasApt(): boolean {
  return onPath(['apt-get']) !== undefined && onPath(['dpkg-deb']) !== undefined
}

/** An unpacked program that runs here, fetched at the first call. Undefined on systems without apt. */
export async function aptProgram(request: AptRequest): Promise<AptProgram | undefined> {
  if (!hasApt()) return undefined
  const home = homeOf(request.programsDir, request.name)
  if (!existsSync(home)) {
    request.announce()
    await fetchPackages(request, home)
  }
  return await unpacked(request, home)
}

/** Whether it has been fetched before. */
export function isUnpacked(programsDir: string, name: string): boolean {
  return existsSync(homeOf(programsDir, name))
}

function homeOf(programsDir: string, name: string): string {
  return join(programsDir, `${name}-apt-${process.arch}`)
}

async function unpacked({ keeper, commands, name }: AptRequest, home: string): Promise<AptProgram> {
  const command = onPath(commands, [join(home, 'usr/bin')])
  if (command === undefined) throw new Error(`${home} holds no ${name}: delete it and try again`)
  const libDir = join(home, 'usr/lib')
  const multiarch = existsSync(libDir) ? (await readdir(libDir)).map((entry) => join(libDir, entry)) : []
  const env = { LD_LIBRARY_PATH: [libDir, ...multiarch].join(':') }
  await keeper.run({ command, args: ['--version'], env: { ...process.env, ...env } })
  return { command, env }
}

async function fetchPackages(request: AptRequest, home: string): Promise<void> {
  const { keeper, programsDir, name } = request
  // Made beside its place and renamed: of two runs at once, one wins, and neither sees half of it.
  await mkdir(programsDir, { recursive: true })
  const partial = await mkdtemp(join(programsDir, `${name}-apt.partial-`))
  const root = join(partial, 'root')
  const archives = join(partial, 'cache/archives')
  try {
    for (const dir of [root, join(partial, 'state/lists/partial'), join(archives, 'partial')]) {
      await mkdir(dir, { recursive: true })
    }
    await download(request, partial)
    for (const file of await readdir(archives)) {
      if (!file.endsWith('.deb')) continue
      await keeper.run({ command: 'dpkg-deb', args: ['-x', join(archives, file), root] })
    }
    await unpacked(request, root)
    await rename(root, home).catch((error: unknown) => {
      if (!existsSync(home)) throw error
    })
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
}

/** Downloads a package and those of its libraries that this system lacks, by apt's own reckoning. */
async function download({ keeper, packages }: AptRequest, partial: string): Promise<void> {
  const settings = {
    'Dir::State': join(partial, 'state'),
    // What is installed is read from the system; without locking, since nothing is installed.
    'Dir::State::status': '/var/lib/dpkg/status',
    'Debug::NoLocking': '1',
    'Dir::Cache': join(partial, 'cache'),
    // As root, apt would download as a user that may not write here.
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
    'Acquire::http::Timeout': '20',
    'Acquire::https::Timeout': '20',
  }
  const apt = async (...args: string[]): Promise<string> => {
    const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    return await keeper.run({
      command: 'apt-get',
      args: ['-q', '-y', ...options, ...args],
      env: { ...process.env, LC_ALL: 'C' },
    })
  }
  // One unreachable source of several is no reason to give up: what counts is whether the packages are found.
  let failure = await apt('update').then(
    () => undefined,
    (error: unknown) => error,
  )
  for (const name of packages) {
    try {
      await apt('--download-only', '--no-install-recommends', 'install', name)
      return
    } catch (error) {
      failure ??= error
    }
  }
  throw failure
}
