// The licences of what is bundled, which have to be passed on with it.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** One text with name, version and licence of each package. Throws for a package that brings no licence. */
export async function licencesOf(folders: readonly string[]): Promise<string> {
  const texts = await Promise.all(
    folders.map(async (folder) => {
      const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
      const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry))
      if (file === undefined && license !== 'MIT') throw new Error(`${name} brings no licence`)
      const text = file === undefined ? `Licensed ${license}.` : (await readFile(join(folder, file), 'utf8')).trim()
      return `${name} ${version}\n\n${text}\n`
    }),
  )
  return `The programs of this package contain these packages.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`
}
