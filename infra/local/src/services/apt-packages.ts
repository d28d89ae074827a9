// Programs on the PATH, else from the packages of Debian and Ubuntu, unpacked into a folder: apt works
// on lists and a cache of its own. It needs no root, and nothing is installed.
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Keeper } from '../processes/keeper.ts'
import { programsDir } from '../processes/repository.ts'
import { onPath } from '../processes/run.ts'

interface Wanted {
  keeper: Keeper
  /** The program has one of these names on the PATH, and the first one in the packages. */
  names: [string, ...string[]]
  /** What is unpacked. The first names its folder. */
  packages: [string, ...string[]]
  say: (sentence: string) => void
}

/** An unpacked program is fetched at the first call. Undefined where there is neither the program nor apt. */
export async function findProgram({ keeper, names, packages, say }: Wanted) {
  const command = onPath(names)
  if (command !== undefined) return { command, env: process.env }
  if (onPath(['apt-get']) === undefined) return undefined
  const [name] = names
  const home = join(programsDir, `${packages[0]}-apt-${process.arch}`)
  if (!existsSync(home))
    say(`No ${name} on the PATH: fetching it with apt-get (into the ignored folder; nothing is installed).`)
  await makeOnce(home, (partial) => fetchPackages(keeper, packages, partial))
  const libDir = join(home, 'usr/lib')
  const multiarch = existsSync(libDir) ? (await readdir(libDir)).map((entry) => join(libDir, entry)) : []
  const env = { ...process.env, LD_LIBRARY_PATH: [libDir, ...multiarch].join(':') }
  return { command: join(home, 'usr/bin', name), env }
}

async function fetchPackages(keeper: Keeper, packages: string[], root: string): Promise<void> {
  const own = await mkdtemp(join(tmpdir(), 'spillway-apt-'))
  const archives = join(own, 'cache/archives')
  const settings = [
    `Dir::State=${join(own, 'state')}`,
    // Installed packages are read from the system, without locking, because nothing is installed.
    'Dir::State::status=/var/lib/dpkg/status',
    'Debug::NoLocking=1',
    `Dir::Cache=${join(own, 'cache')}`,
    // As root, apt would download as a user that may not write here.
    'APT::Sandbox::User=root',
    'Acquire::Languages=none',
    'Acquire::http::Timeout=20',
    'Acquire::https::Timeout=20',
  ].flatMap((setting) => ['-o', setting])
  const apt = (...args: string[]) => keeper.run({ command: 'apt-get', args: ['-q', '-y', ...settings, ...args] })
  try {
    for (const dir of [join(own, 'state/lists/partial'), join(archives, 'partial')])
      await mkdir(dir, { recursive: true })
    // Of several sources one may be unreachable: it matters only if the package is not found.
    const failure: unknown = await apt('update').catch((error) => error)
    // An installed package is downloaded too: its program may not be on the PATH.
    await apt('--download-only', '--no-install-recommends', '--reinstall', 'install', ...packages).catch((error) => {
      throw failure instanceof Error ? failure : error
    })
    for (const file of (await readdir(archives)).filter((found) => found.endsWith('.deb')))
      await keeper.run({ command: 'dpkg-deb', args: ['-x', join(archives, file), root] })
  } finally {
    await rm(own, { recursive: true, force: true })
  }
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
