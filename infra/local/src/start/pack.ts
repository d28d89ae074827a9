// A package as it is published, for releases and tests.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import { openKeeper } from '../processes/keeper.ts'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'
import { takeLock } from './lock.ts'

/** How long to wait for others that pack in this checkout. */
const WAIT_MS = 300_000

/** Packs the package in this folder of the checkout, and gives the path of the tarball in `outdir`. Expects all packages to be built. */
export async function pack(folder: string, outdir: string): Promise<string> {
  const cwd = join(repositoryDir, folder)
  const { name, version }: Record<'name' | 'version', string> = JSON.parse(
    await readFile(join(cwd, 'package.json'), 'utf8'),
  )
  const keeper = openKeeper()
  try {
    // One at a time, because what goes into the tarball is first written into the package's folder.
    const lock = await takeLock(join(defaultStateDir, 'pack.lock'), keeper, WAIT_MS)
    if (!lock) throw new UserError('Another process packs in this checkout and does not end: stop it and try again.')
    try {
      await keeper.run({ command: 'npx', args: ['--yes', 'pnpm', 'pack', '--pack-destination', outdir], cwd })
    } finally {
      lock.close()
    }
  } finally {
    await keeper.close()
  }
  return join(outdir, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`)
}
