// The chart, rendered by Helm, and the table of values in its README.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '@spillway/infra/processes/run'
import { withParts } from '@spillway/infra/rig/settings-table'
import { parse, parseAllDocuments } from 'yaml'

export const chartDir = fileURLToPath(new URL('../spillway', import.meta.url))

/** The value sets that the chart is checked with: the files in its folder ci. */
export const valueSetsDir = join(chartDir, 'ci')

/** The fields that all objects of Kubernetes have in common. */
export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; labels?: Record<string, string>; annotations?: Record<string, string> }
  [field: string]: unknown
}

export interface Rendering {
  /** The path of Helm. */
  helm: string
  release: string
  namespace: string
  /** Files of values. */
  valueFiles?: string[]
  /** Single values, as `path=value`. */
  set?: string[]
}

/** Renders the chart to YAML, its hooks and tests included. Rejects with Helm's output when the values are refused. */
export async function renderChart({ helm, release, namespace, valueFiles = [], set = [] }: Rendering): Promise<string> {
  const args = ['template', release, chartDir, '--namespace', namespace]
  args.push(...valueFiles.flatMap((file) => ['--values', file]), ...set.flatMap((value) => ['--set', value]))
  return await run(helm, args)
}

/** The objects in rendered YAML. */
export function manifests(yaml: string): Manifest[] {
  return parseAllDocuments(yaml)
    .map((document): unknown => document.toJS())
    .filter(isManifest)
}

function isManifest(value: unknown): value is Manifest {
  return typeof value === 'object' && value !== null && 'kind' in value && 'metadata' in value
}

// The table of values in the chart's README: each parameter, its default from values.yaml, its meaning from the schema.

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
