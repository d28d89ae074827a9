/** Makes JSON schemas, and joins a schema with the type of its values. */
import { checkFor } from '@spillway/queue/wire/schema'
import type { FromSchema, JSONSchema } from 'json-schema-to-ts'

/** The keywords of a JSON schema that are read here. */
export interface JsonObject {
  readonly type?: unknown
  readonly description?: string
  readonly anyOf?: readonly object[]
}

export interface Schema<T> {
  json: JsonObject
  /** Whether a value matches. Formats are not checked: the route has done so before. */
  is(value: unknown): value is T
}

type TypeOf<Json> = Json extends JSONSchema ? FromSchema<Json> : never

export function schemaOf<const Json extends JsonObject>(json: Json): Schema<TypeOf<Json>> {
  return { json, is: checkFor<TypeOf<Json>>(json) }
}

type Properties = Readonly<Record<string, object>>

export interface ObjectSchema<All, Required> {
  readonly type: 'object'
  readonly properties: All
  readonly required: readonly Required[]
  readonly additionalProperties: false
}

/** The JSON schema of an object with these properties alone: required ones, then optional ones. */
export function objectOf<const All extends Properties>(required: All): ObjectSchema<All, keyof All & string>
export function objectOf<const Required extends Properties, const Optional extends Properties>(
  required: Required,
  optional: Optional,
): ObjectSchema<Required & Optional, keyof Required & string>
export function objectOf(required: Properties, optional: Properties = {}): ObjectSchema<Properties, string> {
  const properties = { ...required, ...optional }
  return { type: 'object', properties, required: Object.keys(required), additionalProperties: false }
}
