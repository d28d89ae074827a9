// The chart as a package. What `helm package` makes has the time at which it was made in it; the format is no more than a .tgz.
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { chartDir } from '@spillway/helm/chart'
import { writeArchive } from '@spillway/local/processes/archive'
import type { Part } from './part.ts'

export const chart: Part = async ({ outdir, version, epoch }) => {
  const name = basename(chartDir)
  const ignored = (await readFile(join(chartDir, '.helmignore'), 'utf8')).split('\n').filter(Boolean)
  const exclude = ['.helmignore', ...ignored].map((path) => `${name}/${path.replace(/\/$/, '')}`)
  const file = `${name}-${version}.tgz`
  await writeArchive({ file: join(outdir, file), dir: dirname(chartDir), members: [name], exclude, epoch })
  return { files: [file] }
}
