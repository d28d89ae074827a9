// Kubernetes' own kinds as JSON Schemas, from the OpenAPI document that its module carries.
import { isNode, type SchemaNode, strict } from './strict.ts'

/** A schema for each kind: where kubeconform looks for it, and what it says. */
export type KindSchemas = Map<string, SchemaNode>

const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity'
const DEFINITIONS = 'definitions.json'

/** Where kubeconform looks for the schema of a kind; for it, the group of the core kinds is their version. */
export function schemaPath(group: string, version: string, kind: string): string {
  return `${group || version}/${version}/${kind.toLowerCase()}.json`
}

/** The location of all schemas in a folder, as kubeconform is told it. */
export function schemaLocation(dir: string): string {
  return `${dir}/{{ .Group }}/{{ .ResourceAPIVersion }}/{{ .ResourceKind }}.json`
}

/** The schemas of every kind in a swagger.json of Kubernetes, and the one file of definitions that they refer to. */
export function kubernetesSchemas(swagger: unknown): KindSchemas {
  if (!isNode(swagger) || !isNode(swagger.definitions))
    throw new Error('This is no OpenAPI document: it has no definitions.')
  const schemas: KindSchemas = new Map()
  const definitions: SchemaNode = {}
  for (const [name, definition] of Object.entries(swagger.definitions)) {
    definitions[name] = name === QUANTITY ? { type: ['string', 'number'] } : strict(definition)
    for (const { group, version, kind } of kindsOf(definition)) {
      // Relative to the schema's own place, two folders down.
      schemas.set(schemaPath(group, version, kind), { $ref: `../../${DEFINITIONS}#/definitions/${name}` })
    }
  }
  return schemas.set(DEFINITIONS, { definitions })
}

function kindsOf(definition: unknown): { group: string; version: string; kind: string }[] {
  const listed: unknown = isNode(definition) ? definition['x-kubernetes-group-version-kind'] : undefined
  if (!Array.isArray(listed)) return []
  return listed.filter(isNode).map(({ group, version, kind }) => ({
    group: String(group),
    version: String(version),
    kind: String(kind),
  }))
}
