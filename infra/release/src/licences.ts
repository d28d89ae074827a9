// The list of licences of all that is in a release. A licence that is not allowed fails it.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '@spillway/infra/processes/command-line'
import parse, { type Info } from 'spdx-expression-parse'
import type { Part } from './part.ts'
import { type Bom, type Component, licenceOf, nameOf, sbomFiles } from './sboms.ts'

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
    throw new UserError(`Not allowed by infra/release/src/licences.ts: ${found}.`)
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

/**
 * Whether what an expression asks for can be met by allowed licences alone: all sides of an AND, one side of an OR. A licence with an
 * exception is allowed by both: `Apache-2.0 WITH LLVM-exception`. Crates of old write a slash for OR.
 */
export function isAllowed(expression: string, allowed: ReadonlySet<string>): boolean {
  const isMet = (asked: Info): boolean => {
    if ('conjunction' in asked) {
      const sides = [asked.left, asked.right]
      return asked.conjunction === 'and' ? sides.every(isMet) : sides.some(isMet)
    }
    return allowed.has(asked.exception === undefined ? asked.license : `${asked.license} WITH ${asked.exception}`)
  }
  try {
    return isMet(parse(expression.replaceAll('/', ' OR ')))
  } catch {
    // No expression of SPDX.
    return false
  }
}

// What may be in a release: MIT-licensed programs, passed on by anyone, also inside programs whose source is closed.

/** By SPDX identifier, with the reason. */
const allowedLicences: Record<string, string> = {
  '0BSD': 'asks for nothing',
  'Apache-2.0': 'asks for its text and notices, which packages bring along, and grants patents',
  'BlueOak-1.0.0': 'asks for its text',
  'BSD-2-Clause': 'asks for its text',
  'BSD-3-Clause': 'asks for its text, and not to advertise with the names of its authors',
  ISC: 'asks for its text',
  MIT: 'asks for its text',
  'MIT-0': 'asks for nothing',
}

/** Packages that say nothing that a program can read, by name: the licence that their text was found to be. */
const readByHand: Record<string, string> = {}
