// The package of the client, as `pnpm pack` makes it: with the engine for this platform, where it has been built.
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pack } from '../../../worker/client/packaging/pack.ts'
import type { Part } from './part.ts'

export const client: Part = async ({ outdir }) => {
  const dir = await mkdtemp(join(tmpdir(), 'spillway-client-'))
  try {
    const tarball = await pack(dir)
    const file = basename(tarball)
    await copyFile(tarball, join(outdir, file))
    return { files: [file] }
  } finally {
    await rm(dir, { recursive: true })
  }
}
