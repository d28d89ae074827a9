/** Moves titled schemas of an OpenAPI document to its components, so that each appears once. */

type Json = Record<string, unknown>

/**
 * Replaces each object schema that has a `title` by a reference to `components.schemas`. Routes keep whole schemas, because their
 * types are derived from them.
 * @throws Error when two different schemas have one title
 */
export function shareComponents<Document extends { paths?: unknown; components?: object }>(
  document: Document,
): Document {
  const schemas: Record<string, Json> = {}

  function share(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(share)
    if (!isObject(value)) return value
    const shared = Object.fromEntries(
      // Examples are values, even if they look like schemas.
      Object.entries(value).map(([name, part]) => [name, name === 'examples' ? part : share(part)]),
    )
    const { title, type } = shared
    if (typeof title !== 'string' || type !== 'object') return shared
    schemas[title] ??= shared
    if (JSON.stringify(schemas[title]) !== JSON.stringify(shared)) throw new Error(`two schemas are titled ${title}`)
    return { $ref: `#/components/schemas/${title}` }
  }

  const paths = share(document.paths)
  return { ...document, paths, components: { ...document.components, schemas } }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null
}
