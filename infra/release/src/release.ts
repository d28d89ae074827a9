// A release: its parts in a folder, what could not be made here, and the checksums of all files.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { UserError } from '@spillway/local/processes/command-line'
import { engine } from './engine.ts'
import { licences } from './licences.ts'
import { chart, client, images, storm } from './packages.ts'
import { changelog, type Made, type Part, type Release } from './part.ts'
import { sboms } from './sboms.ts'

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
