// What an earlier version of all packages compiled to, to run beside today's: upgrades and rollbacks run both together. It finds today's
// versions of the packages that are not ours; one that today's packages no longer use is a development dependency of this one.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'

export const olderVersionArchive = join(repositoryDir, 'infra/local/versions/older.tgz')

/** The packages in the archive, by the name after their scope. */
export const packageFolders = { api: 'api', client: 'worker/client', prisma: 'prisma', worker: 'worker' }

export interface OlderVersion {
  /** The entries of its programs, for `startProcess` and as an option of members of a Spillway. */
  gateway: string
  worker: string
  /** The module of the client. */
  client: string
  /** Removes it. */
  close(): Promise<void>
}

export async function unpackOlderVersion(): Promise<OlderVersion> {
  await mkdir(defaultStateDir, { recursive: true })
  const dir = await mkdtemp(join(defaultStateDir, 'older-version-'))
  const scope = join(dir, 'node_modules/@spillway')
  await mkdir(scope, { recursive: true })
  execFileSync('tar', ['--extract', '--file', olderVersionArchive, '-C', scope])
  for (const [name, folder] of Object.entries(packageFolders)) {
    // A package may have moved from one of ours to another since.
    for (const found of [folder, ...Object.values(packageFolders), 'infra/local']) {
      await linkPackages(join(repositoryDir, found, 'node_modules'), join(scope, name, 'node_modules'))
    }
  }
  return {
    gateway: join(scope, 'api/dist/main.js'),
    worker: join(scope, 'worker/dist/main.cjs'),
    client: join(scope, 'client/dist/queue-client.js'),
    close: () => rm(dir, { recursive: true, force: true }),
  }
}

/** Links every package but ours, which are those of the older version, by the scope or name that it lacks. */
async function linkPackages(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  for (const name of await readdir(from)) {
    if (name.startsWith('.') || name === '@spillway') continue
    if (!existsSync(join(to, name))) await symlink(join(from, name), join(to, name))
  }
}
