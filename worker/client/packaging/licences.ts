// The licences of what is bundled, which have to be passed on with it.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A list of {@link Bundled} without their folders: the contents of the package made last. */
export const bundledFile = join(import.meta.dirname, '../dist/bundled.json')

/** What the package contains of others. */
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
