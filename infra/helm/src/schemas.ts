// Kinds as JSON Schemas that refuse unknown fields: Kubernetes' own from the OpenAPI document of its module, and custom resources from
// their definitions (CRDs).
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { programsDir } from '@spillway/infra/processes/repository'
import { makeOnce } from '@spillway/infra/services/apt-packages'
import { parseAllDocuments } from 'yaml'
import { crdDirs, moduleDir, moduleVersion } from './programs.ts'

/** A node of a JSON Schema, or of the OpenAPI schemas that Kubernetes publishes. */
export type SchemaNode = { [keyword: string]: unknown }

/** A schema for each kind, by the path at which kubeconform looks. */
type KindSchemas = Map<string, SchemaNode>

const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity'
const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'
const DEFINITIONS = 'definitions.json'

/** kubeconform takes the version of the core kinds for their group. */
function schemaPath(group: unknown, version: unknown, kind: unknown): string {
  return `${group || version}/${version}/${String(kind).toLowerCase()}.json`
}

/** The location of all schemas in a folder, as an option of kubeconform. */
export function schemaLocation(dir: string): string {
  return `${dir}/{{ .Group }}/{{ .ResourceAPIVersion }}/{{ .ResourceKind }}.json`
}

/** A reference to Kubernetes' definitions, from the path of a kind, which is two folders deep. */
function definition(name: string): SchemaNode {
  return { $ref: `../../${DEFINITIONS}#/definitions/${name}` }
}

/** The schemas of every kind in a swagger.json of Kubernetes, and the one file of definitions that they refer to. */
export function kubernetesSchemas(swagger: unknown): KindSchemas {
  if (!isNode(swagger) || !isNode(swagger.definitions))
    throw new Error('This is no OpenAPI document: it has no definitions.')
  const schemas: KindSchemas = new Map()
  const definitions: SchemaNode = {}
  for (const [name, node] of Object.entries(swagger.definitions)) {
    definitions[name] = name === QUANTITY ? { type: ['string', 'number'] } : strict(node)
    const kinds = isNode(node) ? node['x-kubernetes-group-version-kind'] : undefined
    for (const { group, version, kind } of nodesOf(kinds))
      schemas.set(schemaPath(group, version, kind), definition(name))
  }
  return schemas.set(DEFINITIONS, { definitions })
}

/** The schemas of every version of the kinds that these CRDs define; other documents are skipped. */
export function customResourceSchemas(documents: unknown[]): KindSchemas {
  const schemas: KindSchemas = new Map()
  for (const { kind, spec } of nodesOf(documents)) {
    if (kind !== 'CustomResourceDefinition' || !isNode(spec) || !isNode(spec.names)) continue
    for (const { name, schema } of nodesOf(spec.versions)) {
      const openApi = isNode(schema) ? schema.openAPIV3Schema : undefined
      if (isNode(openApi)) schemas.set(schemaPath(spec.group, name, spec.names.kind), withIdentity(openApi))
    }
  }
  return schemas
}

/** Adds the fields that the API server adds to the schema of every custom resource. */
function withIdentity(openApi: SchemaNode): SchemaNode {
  const { required, properties } = openApi
  const identity = { apiVersion: { type: 'string' }, kind: { type: 'string' } }
  const schema = strict({
    ...openApi,
    type: 'object',
    required: ['apiVersion', 'kind', 'metadata', ...(Array.isArray(required) ? required : [])],
    properties: { ...(isNode(properties) ? properties : {}), ...identity },
  })
  if (!isNode(schema) || !isNode(schema.properties)) throw new Error('A custom resource has no fields.')
  return { ...schema, properties: { ...schema.properties, metadata: definition(OBJECT_META) } }
}

/**
 * Rewrites an OpenAPI schema of Kubernetes as JSON Schema: objects take no fields but their own, a number or a
 * text may be either, and null is allowed where OpenAPI says nullable.
 */
function strict(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(strict)
  if (!isNode(node)) return node
  if (node['x-kubernetes-int-or-string'] === true || node.format === 'int-or-string')
    return { type: ['integer', 'string'] }
  const result: SchemaNode = {}
  for (const [keyword, value] of Object.entries(node)) {
    // The names of fields are no keywords: a field may be called "format" or "properties".
    if (keyword === 'properties' && isNode(value))
      result[keyword] = Object.fromEntries(Object.entries(value).map(([name, field]) => [name, strict(field)]))
    else if (!keyword.startsWith('x-') && keyword !== 'format' && keyword !== 'nullable')
      result[keyword] = strict(value)
  }
  const open = node['x-kubernetes-preserve-unknown-fields'] === true
  if (isNode(node.properties) && !open) result.additionalProperties ??= false
  if (node.nullable === true && typeof node.type === 'string') result.type = [node.type, 'null']
  return result
}

export function isNode(value: unknown): value is SchemaNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function nodesOf(list: unknown): SchemaNode[] {
  return Array.isArray(list) ? list.filter(isNode) : []
}

// All schemas that the chart is checked against, written once into the ignored folder.

/** The folder of the schemas for these versions, whether it is there or not. */
export async function schemasDir(): Promise<string> {
  const names = ['k8s.io/kubernetes', 'github.com/kedacore/keda/v2'] as const
  return join(programsDir, `schemas-${(await Promise.all(names.map(moduleVersion))).join('-')}`)
}

/** Writes the schemas unless they are there, and returns their folder. Needs Go on the PATH, to find the modules. */
export async function writeSchemas(): Promise<string> {
  const dir = await schemasDir()
  await makeOnce(dir, writeAll)
  return dir
}

async function writeAll(dir: string): Promise<void> {
  const swagger = join(await moduleDir('k8s.io/kubernetes'), 'api/openapi-spec/swagger.json')
  const documents: unknown[] = []
  for (const source of Object.values(await crdDirs())) {
    for (const file of (await readdir(source)).filter((name) => name.endsWith('.yaml'))) {
      documents.push(...parseAllDocuments(await readFile(join(source, file), 'utf8')).map((one) => one.toJS()))
    }
  }
  const kubernetes = kubernetesSchemas(JSON.parse(await readFile(swagger, 'utf8')))
  for (const [path, schema] of [...kubernetes, ...customResourceSchemas(documents)]) {
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), JSON.stringify(schema))
  }
  const scalers = join(await moduleDir('github.com/kedacore/keda/v2'), 'schema/generated/scalers-schema.json')
  await copyFile(scalers, join(dir, 'scalers.json'))
}
