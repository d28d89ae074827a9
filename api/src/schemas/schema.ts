/** A JSON schema together with the type of the values that it admits, where a generic function needs both. */
import { checkFor } from '@spillway/client/protocol/schema'
import type { FromSchema, JSONSchema } from 'json-schema-to-ts'

/** A JSON schema, as far as anyone looks into it. */
export interface JsonObject {
  readonly type?: unknown
  readonly description?: string
  readonly anyOf?: readonly object[]
}

export interface Schema<T> {
  json: JsonObject
  /** Whether a value is of this shape. Formats are not looked at: a route has done so before. */
  is(value: unknown): value is T
}

type TypeOf<Json> = Json extends JSONSchema ? FromSchema<Json> : never

export function schemaOf<const Json extends JsonObject>(json: Json): Schema<TypeOf<Json>> {
  return { json, is: checkFor<TypeOf<Json>>(json) }
}
