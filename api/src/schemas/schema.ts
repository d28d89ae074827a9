/** Joins a JSON schema with the type of its values. */
import { checkFor } from '@spillway/queue/wire/schema'
import type { FromSchema, JSONSchema } from 'json-schema-to-ts'

/** The keywords of a JSON schema that this code reads. */
export interface JsonObject {
  readonly type?: unknown
  readonly description?: string
  readonly anyOf?: readonly object[]
  readonly examples?: readonly unknown[]
}

export interface Schema<T> {
  json: JsonObject
  /** Whether a value matches. Formats are not checked: the route has checked them. */
  is(value: unknown): value is T
}

type TypeOf<Json> = Json extends JSONSchema ? FromSchema<Json> : never

export function schemaOf<const Json extends JsonObject>(json: Json): Schema<TypeOf<Json>> {
  return { json, is: checkFor<TypeOf<Json>>(json) }
}
