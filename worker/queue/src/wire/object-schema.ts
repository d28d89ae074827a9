/** JSON schemas of objects, without Ajv: a drop-in loads them at its import. */

type Properties = Readonly<Record<string, object>>

export interface ObjectSchema<All, Required> {
  readonly type: 'object'
  readonly properties: All
  readonly required: readonly Required[]
  readonly additionalProperties: false
}

/** The JSON schema of an object with only these properties: required ones, then optional ones. */
export function objectOf<const All extends Properties>(required: All): ObjectSchema<All, keyof All & string>
export function objectOf<const Required extends Properties, const Optional extends Properties>(
  required: Required,
  optional: Optional,
): ObjectSchema<Required & Optional, keyof Required & string>
// Bundlers leave schemas out that a program does not use.
// @__NO_SIDE_EFFECTS__
export function objectOf(required: Properties, optional: Properties = {}): ObjectSchema<Properties, string> {
  const properties = { ...required, ...optional }
  return { type: 'object', properties, required: Object.keys(required), additionalProperties: false }
}
