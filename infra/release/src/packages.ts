// The packages that `pnpm pack` makes: the client, with the engine for this platform where it has been built, and the storm.
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { repositoryDir } from '@spillway/local/processes/repository'
import { pack } from '../../../worker/client/packaging/pack.ts'
import type { Part } from './part.ts'

export const client: Part = async ({ outdir }) => ({ files: [basename(await pack(outdir))] })

export const storm: Part = async ({ outdir }) => {
  const args = ['--yes', 'pnpm', 'pack', '--pack-destination', outdir]
  await promisify(execFile)('npx', args, { cwd: join(repositoryDir, 'loadtests/storm') })
  return { files: (await readdir(outdir)).filter((file) => file.startsWith('spillway-storm-')) }
}
