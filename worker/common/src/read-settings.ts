/** Reads settings from the environment, by the schema that declares them. */
import { Ajv, type ErrorObject } from 'ajv'
import { readSecret } from './secrets.js'

interface SettingsSchema {
  /** A setting that is `writeOnly` is a secret. */
  readonly properties: Readonly<Record<string, Readonly<{ type: string; description: string; writeOnly?: boolean }>>>
  readonly required?: readonly string[]
}

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${PascalCase<Rest>}`
  : Lowercase<Name>
type PascalCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${Capitalize<Lowercase<First>>}${PascalCase<Rest>}`
  : Capitalize<Lowercase<Name>>

/** The values of environment variables, by their names in camelCase: `LOGIN_WAIT_MS` is `loginWaitMs`. */
export type Settings<Variables> = {
  [Name in keyof Variables & string as CamelCase<Name>]: Variables[Name]
}

function camelCase(name: string): string {
  return name.toLowerCase().replace(/_(.)/g, (_, first: string) => first.toUpperCase())
}

/**
 * Reads all settings once. An empty variable counts as not set: compose files write `${NAME:-}`.
 *
 * @param contradictionsIn sentences for the rules that the schema cannot express, on the raw texts
 * @throws one error that names every invalid variable, and shows no values
 */
export function readSettings<Variables>(
  { properties, required = [] }: SettingsSchema,
  env: NodeJS.ProcessEnv,
  contradictionsIn: (texts: NodeJS.ProcessEnv) => Iterable<string>,
): Settings<Variables> {
  const texts: NodeJS.ProcessEnv = {}
  const unreadable = new Map<string, string>()
  for (const [name, { writeOnly }] of Object.entries(properties)) {
    try {
      const text = writeOnly ? readSecret(env, name) : env[name]
      if (text) texts[name] = text
    } catch (error) {
      unreadable.set(name, error instanceof Error ? error.message : String(error))
    }
  }
  const inCamelCase = (values: object) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [camelCase(name), value]))
  const schema = { type: 'object', properties: inCamelCase(properties), required: required.map(camelCase) }
  // Schemas are not validated, which would take 17 ms at each start: they are part of the program.
  const ajv = new Ajv({ allErrors: true, useDefaults: true, coerceTypes: true, meta: false, validateSchema: false })
  const validate = ajv.compile<Settings<Variables>>(schema)
  const values: unknown = inCamelCase(texts)
  const isValid = validate(values)
  const names = new Map(Object.keys(properties).map((name) => [camelCase(name), name]))
  const invalid = (validate.errors ?? []).flatMap((error) => {
    const name = names.get(String(error.params.missingProperty ?? error.instancePath.slice(1))) ?? ''
    return error.keyword === 'required' && unreadable.has(name) ? [] : [problemOf(error, name, properties)]
  })
  const problems = [...unreadable.values(), ...invalid, ...contradictionsIn({ ...texts })]
  if (isValid && problems.length === 0) return values
  throw new Error(problems.join('; '))
}

function problemOf(
  { keyword, params, message = 'is not valid' }: ErrorObject,
  name: string,
  properties: SettingsSchema['properties'],
): string {
  if (keyword === 'required') return `${name} must be set`
  if (keyword === 'enum') return `${name} must be one of ${params.allowedValues.join(', ')}`
  if (keyword === 'pattern') return `${name} must have the form of its description (${properties[name]?.description})`
  return `${name} ${params.type === 'boolean' ? 'must be true or false' : message}`
}
