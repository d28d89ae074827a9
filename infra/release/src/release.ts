// A release: its parts in a folder, what could not be made here, and the checksums of all files.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { UserError } from '@spillway/infra/processes/command-line'
import { writeArchive } from '@spillway/infra/processes/run'
import { pack } from '@spillway/infra/start/build'
import { buildImages } from '../../docker/src/images.ts'
import { baseName, fetchBase, writeOciArchive } from '../../docker/src/oci.ts'
import { chartDir } from '../../helm/src/chart.ts'
import { engine } from './engine.ts'
import { licences } from './licences.ts'
import { changelog, type Made, type Part, type Release } from './part.ts'
import { sboms } from './sboms.ts'

// The packages that `pnpm pack` makes: the client, with the engine for this platform where it has been built, and the storm.

const client: Part = async ({ outdir }) => ({ files: [basename(await pack('worker/client', outdir))] })

const storm: Part = async ({ outdir }) => ({ files: [basename(await pack('loadtests/storm', outdir))] })

// The chart as a package. What `helm package` makes has the time at which it was made in it; the format is no more than a .tgz.

const chart: Part = async ({ outdir, version, epoch }) => {
  const name = basename(chartDir)
  const ignored = (await readFile(join(chartDir, '.helmignore'), 'utf8')).split('\n').filter(Boolean)
  const exclude = ['.helmignore', ...ignored].map((path) => `${name}/${path.replace(/\/$/, '')}`)
  const file = `${name}-${version}.tgz`
  await writeArchive({ file: join(outdir, file), dir: dirname(chartDir), members: [name], exclude, epoch })
  return { files: [file] }
}

// The images as OCI archives, for the processors of this machine, built and put together without a container engine.

const images: Part = async ({ outdir, version, commit, epoch, say }) => {
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

/** In the order in which they are made: the client's package contains the engine, SBOMs what was packed, licences what SBOMs list. */
export const parts = { changelog, chart, engine, client, storm, sboms, licences, images } satisfies Record<string, Part>
export type PartName = keyof typeof parts

/** What was made of what, and what could not be made. */
const RECORD = 'release.json'

/**
 * Makes these parts in the place of an earlier release in the folder, once all are there. Rejects when one is wrong; one that cannot be made
 * on this machine is recorded.
 */
export async function makeRelease(release: Release, names: readonly PartName[]): Promise<Record<string, Made>> {
  const { outdir, version, commit, changed, epoch } = release
  await refuseOthers(outdir)
  const partial = `${outdir}.partial`
  await rm(partial, { recursive: true, force: true })
  await mkdir(partial, { recursive: true })
  const made: Record<string, Made> = {}
  for (const name of names) made[name] = await parts[name]({ ...release, outdir: partial })
  const record = {
    version,
    commit,
    changed,
    date: new Date(epoch * 1_000).toISOString(),
    builtOn: { platform: process.platform, architecture: process.arch, node: process.version },
    parts: made,
  }
  await writeFile(join(partial, RECORD), `${JSON.stringify(record, undefined, 2)}\n`)
  const files = Object.values(made).flatMap((part) => ('files' in part ? part.files : []))
  await writeFile(join(partial, 'SHA256SUMS'), await checksums(partial, [...files, RECORD]))
  await rm(outdir, { recursive: true, force: true })
  await rename(partial, outdir)
  return made
}

/** A folder of something else must not be deleted. */
async function refuseOthers(dir: string): Promise<void> {
  const present = await readdir(dir).catch((): string[] => [])
  if (present.length > 0 && !present.includes(RECORD)) {
    throw new UserError(`${dir} has files that are no release: name another folder.`)
  }
}

/** In the form that `sha256sum --check` reads. */
async function checksums(dir: string, files: string[]): Promise<string> {
  const lines = files.toSorted().map(async (file) => {
    const hash = createHash('sha256')
    await pipeline(createReadStream(join(dir, file)), hash)
    return `${hash.digest('hex')}  ${file}\n`
  })
  return (await Promise.all(lines)).join('')
}
