import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { withParts } from '@spillway/infra/test/settings-table'
import { parse } from 'yaml'
import { chartDir } from '../src/chart.ts'

// The table of values in the chart's README: each parameter, its default from values.yaml, its
// meaning from the schema.

export const readmeFile = join(chartDir, 'README.md')

/** The README with its table written again. */
export async function readmeWithTable(): Promise<string> {
  return withParts(await readFile(readmeFile, 'utf8'), { values: await valuesTable() })
}

async function valuesTable(): Promise<string> {
  const values: unknown = parse(await readFile(join(chartDir, 'values.yaml'), 'utf8'))
  const schema: unknown = JSON.parse(await readFile(join(chartDir, 'values.schema.json'), 'utf8'))
  if (!isNode(values) || !isNode(schema)) throw new Error('values.yaml or its schema is no object')
  return ['| parameter | default | meaning |', '|---|---|---|', ...rows(values, schema, '')].join('\n')
}

/** An object of values.yaml, or of its JSON Schema. */
type Node = { [name: string]: unknown }

function rows(values: Node, schema: Node, prefix: string): string[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const path = `${prefix}${name}`
    const described = isNode(schema.properties) ? schema.properties[name] : undefined
    if (!isNode(described)) throw new Error(`values.schema.json does not know ${path}`)
    if (isNode(value) && isNode(described.properties)) return rows(value, described, `${path}.`)
    if (typeof described.description !== 'string') throw new Error(`values.schema.json does not describe ${path}`)
    const choices = Array.isArray(described.enum) ? ` (${described.enum.map((one) => `\`${one}\``).join(', ')})` : ''
    return [`| \`${path}\` | \`${JSON.stringify(value)}\` | ${described.description}${choices} |`]
  })
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
