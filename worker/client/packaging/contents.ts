// What the package contains of others: bundled npm packages, and the crates of the native engine.
// Their licences have to be passed on with it.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PACKED_ADDON } from '../../src/hashing/native.ts'

/** A list of {@link Bundled} without their folders: the contents of the package made last. */
export const bundledFile = join(import.meta.dirname, '../dist/bundled.json')

export interface Bundled {
  name: string
  version: string
  /** As an SPDX expression. */
  license: string
  /** Its package URL, which says where it comes from. */
  purl: string
  folder: string
}

/** The npm packages in these folders. */
export function packagesIn(folders: readonly string[]): Promise<Bundled[]> {
  return Promise.all(
    folders.map(async (folder) => {
      const { name, version, license }: Pick<Bundled, 'name' | 'version' | 'license'> = JSON.parse(
        await readFile(join(folder, 'package.json'), 'utf8'),
      )
      return { name, version, license, purl: `pkg:npm/${name.replace('@', '%40')}@${version}`, folder }
    }),
  )
}

/**
 * One text with the name, version and licence of each. Throws for one that brings no licence and
 * has another than MIT.
 */
export async function licencesOf(bundled: readonly Bundled[]): Promise<string> {
  const texts = await Promise.all(
    bundled.map(async ({ name, version, license, folder }) => {
      const files = (await readdir(folder)).filter((entry) => /^(licen[cs]e|copying)/i.test(entry))
      // Of several licences one may be chosen.
      const file = files.find((entry) => /mit/i.test(entry)) ?? files[0]
      if (file === undefined && !/\bMIT\b/.test(license)) throw new Error(`${name} brings no licence`)
      const text = file === undefined ? 'Licensed MIT.' : (await readFile(join(folder, file), 'utf8')).trim()
      return `${name} ${version}\n\n${text}\n`
    }),
  )
  return `The programs of this package contain these packages.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`
}

const crate = join(import.meta.dirname, '../../engine')
/** Where cargo's library is put once it has been built. */
const builtAddon = join(crate, 'spillway.node')

/**
 * Copies the native engine for this platform if it is built, which needs cargo. Returns the crates
 * that are linked into it. Where the package has none that loads, packages hash.
 */
export async function copyEngine(outdir: string): Promise<Bundled[]> {
  if (!existsSync(builtAddon)) return []
  await copyFile(builtAddon, join(outdir, PACKED_ADDON))
  return linkedCrates()
}

interface Crate {
  name: string
  version: string
  license: string
  manifest_path: string
}

/** The crates that are linked into the engine. Expects cargo. */
export function linkedCrates(): Bundled[] {
  const locked = ['--locked', '--features', 'addon']
  const tree = cargo(['tree', ...locked, '--edges', 'normal,no-proc-macro', '--prefix', 'none', '--format', '{p}'])
  const linked = new Set([...tree.matchAll(/^(\S+) v(\S+)$/gm)].map(([, name, version]) => `${name} ${version}`))
  const { packages }: { packages: Crate[] } = JSON.parse(cargo(['metadata', ...locked, '--format-version', '1']))
  return packages
    .filter(({ name, version }) => linked.has(`${name} ${version}`))
    .map(({ name, version, license, manifest_path }) => {
      return { name, version, license, purl: `pkg:cargo/${name}@${version}`, folder: dirname(manifest_path) }
    })
}

function cargo(args: string[]): string {
  return execFileSync('cargo', args, { cwd: crate, encoding: 'utf8', maxBuffer: 2 ** 26 })
}
