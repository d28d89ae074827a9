// JSON Schema in the form that refuses what it does not know.

/** A node of a JSON Schema, or of the OpenAPI schemas that Kubernetes publishes. */
export type SchemaNode = { [keyword: string]: unknown }

/**
 * Rewrites an OpenAPI schema of Kubernetes as JSON Schema: objects take no fields but their own, what may be a number or
 * a text may be both, and null is allowed where OpenAPI says nullable.
 */
export function strict(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(strict)
  if (!isNode(node)) return node
  if (node['x-kubernetes-int-or-string'] === true || node.format === 'int-or-string')
    return { type: ['integer', 'string'] }
  const result: SchemaNode = {}
  for (const [keyword, value] of Object.entries(node)) {
    // The names of fields are no keywords: one may well be called "format" or "properties".
    if (keyword === 'properties' && isNode(value)) result[keyword] = mapValues(value, strict)
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

function mapValues(node: SchemaNode, change: (value: unknown) => unknown): SchemaNode {
  return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, change(value)]))
}
