// Custom resources as JSON Schemas, from their definitions (CRDs).
import { type KindSchemas, schemaPath } from './kubernetes.ts'
import { isNode, type SchemaNode, strict } from './strict.ts'

/** The schemas of every version of the kinds that these CRD documents define; other documents are passed over. */
export function customResourceSchemas(documents: unknown[]): KindSchemas {
  const schemas: KindSchemas = new Map()
  for (const document of documents) {
    if (!isNode(document) || document.kind !== 'CustomResourceDefinition' || !isNode(document.spec)) continue
    const { group, names, versions } = document.spec
    if (!isNode(names) || !Array.isArray(versions)) continue
    for (const version of versions.filter(isNode)) {
      const openApi = isNode(version.schema) ? version.schema.openAPIV3Schema : undefined
      if (!isNode(openApi)) continue
      schemas.set(schemaPath(String(group), String(version.name), String(names.kind)), withIdentity(openApi))
    }
  }
  return schemas
}

/** What the API server adds to the schema of every custom resource. */
function withIdentity(openApi: SchemaNode): SchemaNode {
  const properties = isNode(openApi.properties) ? openApi.properties : {}
  const complete = {
    ...openApi,
    type: 'object',
    required: ['apiVersion', 'kind', 'metadata', ...(Array.isArray(openApi.required) ? openApi.required : [])],
    properties: { ...properties, apiVersion: { type: 'string' }, kind: { type: 'string' } },
  }
  const schema = strict(complete)
  if (!isNode(schema) || !isNode(schema.properties)) throw new Error('A custom resource has no fields.')
  const meta = '../../definitions.json#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'
  return { ...schema, properties: { ...schema.properties, metadata: { $ref: meta } } }
}
