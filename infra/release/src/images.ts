// The images as OCI archives, for the processors of this machine, built and put together without a container engine.
import { join } from 'node:path'
import { baseName, fetchBase } from '@spillway/docker/base'
import { buildImages } from '@spillway/docker/images'
import { writeOciArchive } from '@spillway/docker/oci'
import { UserError } from '@spillway/local/processes/command-line'
import type { Part } from './part.ts'

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
