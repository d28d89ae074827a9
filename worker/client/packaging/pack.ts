// Packs the package as it is published.
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const clientDir = join(import.meta.dirname, '..')

/** Puts the tarball into a folder without another one and gives its path. Expects worker and client to be built. */
export async function pack(dir: string): Promise<string> {
  await promisify(execFile)('npx', ['--yes', 'pnpm', 'pack', '--pack-destination', dir], { cwd: clientDir })
  const tarball = (await readdir(dir)).find((file) => /^spillway-client-\d.*\.tgz$/.test(file))
  if (tarball === undefined) throw new Error('pnpm pack made no tarball')
  return join(dir, tarball)
}
