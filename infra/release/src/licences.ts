// The list of licences of all that is in a release. A licence that is not allowed fails it.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '@spillway/local/processes/command-line'
import { allowedLicences, readByHand } from './allowed-licences.ts'
import { type Bom, type Component, licenceOf, nameOf } from './cyclonedx.ts'
import type { Part } from './part.ts'
import { sbomFiles } from './sboms.ts'
import { isAllowed } from './spdx.ts'

const OWN_SCOPE = '@spillway/'
const UNKNOWN = 'no licence'

export const licences: Part = async ({ outdir }) => {
  const boms = await Promise.all(sbomFiles.map((file) => readFile(join(outdir, file), 'utf8')))
  const components = boms.flatMap((text): Component[] => {
    const { components }: Bom = JSON.parse(text)
    return components
  })
  await writeFile(join(outdir, 'LICENCES.md'), licenceList(components))
  return { files: ['LICENCES.md'] }
}

/** The packages of others by licence. Throws a UserError that names those whose licence is not allowed. */
export function licenceList(components: readonly Component[]): string {
  const byLicence = new Map<string, Set<string>>()
  for (const component of components) {
    const name = nameOf(component)
    if (name.startsWith(OWN_SCOPE)) continue
    const licence = licenceOf(component) ?? readByHand[name] ?? UNKNOWN
    const packages = byLicence.get(licence) ?? new Set()
    byLicence.set(licence, packages.add(`${name} ${component.version ?? ''}`.trim()))
  }
  const allowed = new Set(Object.keys(allowedLicences))
  const refused = [...byLicence].filter(([licence]) => !isAllowed(licence, allowed))
  if (refused.length > 0) {
    const found = refused.map(([licence, packages]) => `${[...packages].join(', ')} (${licence})`).join('; ')
    throw new UserError(`Not allowed by infra/release/src/allowed-licences.ts: ${found}.`)
  }
  const sections = [...byLicence].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const lines = sections.map(
    ([licence, packages]) =>
      `## ${licence}\n\n${[...packages]
        .sort()
        .map((one) => `- ${one}\n`)
        .join('')}`,
  )
  return `# Licences of what Spillway contains\n\n${lines.join('\n')}`
}
