/** Reads settings from the environment, by the schema that declares them. */
import { Ajv, type ErrorObject } from 'ajv'
import { fileVariable, readSecret } from './secrets.js'

interface SettingsSchema {
  /** A setting that is `writeOnly` is a secret. */
  readonly properties: Readonly<Record<string, Readonly<{ type: string; description: string; writeOnly?: boolean }>>>
}

/** The variables that a process with these settings reads. */
export function variablesOf({ properties }: SettingsSchema): string[] {
  return Object.entries(properties).flatMap(([name, { writeOnly }]) =>
    writeOnly ? [name, fileVariable(name)] : [name],
  )
}

/**
 * Reads all settings once. An empty variable counts as not set: compose files write `${NAME:-}`.
 *
 * @param contradictionsIn sentences for the rules that the schema cannot express, on the raw texts
 * @throws one error that names every invalid variable, and shows no values
 */
export function readSettings<Config>(
  schema: SettingsSchema,
  env: NodeJS.ProcessEnv,
  contradictionsIn: (texts: NodeJS.ProcessEnv) => string[],
): Config {
  const texts: NodeJS.ProcessEnv = {}
  const unreadable = new Map<string, string>()
  for (const [name, { writeOnly }] of Object.entries(schema.properties)) {
    try {
      const text = writeOnly ? readSecret(env, name) : env[name]
      if (text) texts[name] = text
    } catch (error) {
      unreadable.set(name, error instanceof Error ? error.message : String(error))
    }
  }
  const contradictions = contradictionsIn({ ...texts })
  // The schemas are our own: their validation takes 17 ms at each start.
  const ajv = new Ajv({ allErrors: true, useDefaults: true, coerceTypes: true, meta: false, validateSchema: false })
  const validate = ajv.compile<Config>({ ...schema })
  const values: unknown = texts
  const isValid = validate(values)
  const invalid = (validate.errors ?? []).filter(({ params }) => !unreadable.has(String(params.missingProperty)))
  const problems = [...unreadable.values(), ...invalid.map((error) => problemOf(error, schema)), ...contradictions]
  if (isValid && problems.length === 0) return values
  throw new Error(problems.join('; '))
}

function problemOf(error: ErrorObject, { properties }: SettingsSchema): string {
  const { instancePath, keyword, params, message = 'is not valid' } = error
  if (keyword === 'required') return `${params.missingProperty} must be set`
  const name = instancePath.slice(1)
  if (keyword === 'enum') return `${name} must be one of ${params.allowedValues.join(', ')}`
  if (keyword === 'pattern') return `${name} must have the form of its description (${properties[name]?.description})`
  return `${name} ${params.type === 'boolean' ? 'must be true or false' : message}`
}

/** Shorter names are a letter away from variables of many other programs. */
const MISSPELLED_MIN_LENGTH = 6

/** A sentence for each variable that is no setting, and is a letter away from one. */
export function misspelledIn(env: NodeJS.ProcessEnv, schema: SettingsSchema): string[] {
  const settings = variablesOf(schema)
  return Object.keys(env).flatMap((name) => {
    if (name.length < MISSPELLED_MIN_LENGTH || settings.includes(name)) return []
    const meant = settings.find((setting) => isALetterAway(name, setting))
    return meant === undefined ? [] : [`${name} is no setting and has no effect: ${meant} is one`]
  })
}

/** Whether a letter is missing, added or replaced, or two neighbours are swapped. */
function isALetterAway(one: string, other: string): boolean {
  const most = Math.min(one.length, other.length)
  let start = 0
  while (start < most && one[start] === other[start]) start += 1
  let end = 0
  while (end < most - start && one.at(-1 - end) === other.at(-1 - end)) end += 1
  const [left, right] = [one.slice(start, one.length - end), other.slice(start, other.length - end)]
  const isSwapped = left.length === 2 && `${left[1]}${left[0]}` === right
  return isSwapped || (left.length <= 1 && right.length <= 1)
}
