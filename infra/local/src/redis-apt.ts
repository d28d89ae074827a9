// Redis from the packages of Debian and Ubuntu, without installing them: apt works on lists and a cache of its own, and
// the packages are unpacked into a folder. Needs no root and changes nothing outside that folder.
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Keeper } from './keeper.ts'
import { localProgram, onPath, type RedisProgram, type RedisSearch, serverNames } from './redis-program.ts'

/** An unpacked Redis, fetched at the first call. Undefined on systems without apt. */
export async function aptRedis({ keeper, dir, programsDir, say }: RedisSearch): Promise<RedisProgram | undefined> {
  if (onPath(['apt-get']) === undefined || onPath(['dpkg-deb']) === undefined) return undefined
  const home = join(programsDir, `redis-apt-${process.arch}`)
  if (!existsSync(home)) {
    say('No Redis on the PATH: fetching one with apt-get (into the ignored folder; nothing is installed).')
    await fetchPackages(keeper, programsDir, home)
  }
  const { command, env } = await unpackedRedis(keeper, home)
  return localProgram(command, dir, env)
}

async function unpackedRedis(keeper: Keeper, home: string): Promise<{ command: string; env: NodeJS.ProcessEnv }> {
  const command = onPath(serverNames, [join(home, 'usr/bin')])
  if (command === undefined) throw new Error(`${home} holds no Redis: delete it and try again`)
  const libDir = join(home, 'usr/lib')
  const multiarch = (await readdir(libDir)).map((name) => join(libDir, name))
  const env = { LD_LIBRARY_PATH: [libDir, ...multiarch].join(':') }
  await keeper.run({ command, args: ['--version'], env: { ...process.env, ...env } })
  return { command, env }
}

async function fetchPackages(keeper: Keeper, programsDir: string, home: string): Promise<void> {
  // Made beside its place and renamed: of two runs at once, one wins, and neither sees half of it.
  await mkdir(programsDir, { recursive: true })
  const partial = await mkdtemp(join(programsDir, 'redis-apt.partial-'))
  const root = join(partial, 'root')
  const archives = join(partial, 'cache/archives')
  try {
    for (const dir of [root, join(partial, 'state/lists/partial'), join(archives, 'partial')]) {
      await mkdir(dir, { recursive: true })
    }
    await download(keeper, partial)
    for (const file of await readdir(archives)) {
      if (!file.endsWith('.deb')) continue
      await keeper.run({ command: 'dpkg-deb', args: ['-x', join(archives, file), root] })
    }
    await unpackedRedis(keeper, root)
    await rename(root, home).catch((error: unknown) => {
      if (!existsSync(home)) throw error
    })
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
}

/** Downloads Redis and those of its libraries that this system lacks, by apt's own reckoning. */
async function download(keeper: Keeper, partial: string): Promise<void> {
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
  const updated = await apt('update').catch((error: Error) => error)
  const install = ['--download-only', '--no-install-recommends', 'install']
  try {
    await apt(...install, 'redis-server').catch(() => apt(...install, 'valkey-server'))
  } catch (error) {
    throw updated instanceof Error ? updated : error
  }
}
