// The packages that `pnpm pack` makes: the client, with the engine for this platform where it has been built, and the storm.
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { baseName, fetchBase } from '@spillway/docker/base'
import { buildImages } from '@spillway/docker/images'
import { writeOciArchive } from '@spillway/docker/oci'
import { chartDir } from '@spillway/helm/chart'
import { writeArchive } from '@spillway/local/processes/archive'
import { UserError } from '@spillway/local/processes/command-line'
import { repositoryDir } from '@spillway/local/processes/repository'
import { pack } from '../../../worker/client/packaging/pack.ts'
import type { Part } from './part.ts'

export const client: Part = async ({ outdir }) => ({ files: [basename(await pack(outdir))] })

export const storm: Part = async ({ outdir }) => {
  const args = ['--yes', 'pnpm', 'pack', '--pack-destination', outdir]
  await promisify(execFile)('npx', args, { cwd: join(repositoryDir, 'loadtests/storm') })
  return { files: (await readdir(outdir)).filter((file) => file.startsWith('spillway-storm-')) }
}

// The chart as a package. What `helm package` makes has the time at which it was made in it; the format is no more than a .tgz.

export const chart: Part = async ({ outdir, version, epoch }) => {
  const name = basename(chartDir)
  const ignored = (await readFile(join(chartDir, '.helmignore'), 'utf8')).split('\n').filter(Boolean)
  const exclude = ['.helmignore', ...ignored].map((path) => `${name}/${path.replace(/\/$/, '')}`)
  const file = `${name}-${version}.tgz`
  await writeArchive({ file: join(outdir, file), dir: dirname(chartDir), members: [name], exclude, epoch })
  return { files: [file] }
}

// The images as OCI archives, for the processors of this machine, built and put together without a container engine.

export const images: Part = async ({ outdir, version, commit, epoch, say }) => {
  if (process.platform !== 'linux') return { missing: 'images hold programs of Linux, and are built there' }
  const base = await fetchBase(say).catch((error: unknown) => {
    if (!(error instanceof UserError)) throw error
    say(error.message)
    return undefined
  })
  if (base === undefined) return { missing: `their base, ${baseName()}, cannot be fetched here` }
  const files: string[] = []
  for (const [target, image] of Object.entries(await buildImages(say))) {
    const file = `spillway-${target}-${version}-linux-${process.arch}.oci.tar`
    const annotations = {
      'org.opencontainers.image.title': `spillway/${target}`,
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.revision': commit,
      'org.opencontainers.image.licenses': 'MIT',
      'org.opencontainers.image.base.name': baseName(),
    }
    await writeOciArchive({ image, base, file: join(outdir, file), annotations, epoch })
    files.push(file)
  }
  return { files }
}
