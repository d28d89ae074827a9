// Triggers against what KEDA itself says its scalers take: a misspelt field would be passed over in
// silence.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** One parameter of a scaler, as KEDA's generated schema has it. */
interface Parameter {
  name: string
  optional?: boolean
  default?: string
  allowedValue?: string[]
  metadataVariableReadable?: boolean
  triggerAuthenticationVariableReadable?: boolean
}

/** The parameters of every scaler, by the type of its trigger. */
export type Scalers = Map<string, Parameter[]>

export interface Trigger {
  type: string
  name?: string
  metadata: Record<string, string>
}

/** Reads KEDA's own description of its scalers from the folder of schemas. */
export async function readScalers(schemasDir: string): Promise<Scalers> {
  const described: { scalers: { type: string; parameters: Parameter[] }[] } = JSON.parse(
    await readFile(join(schemasDir, 'scalers.json'), 'utf8'),
  )
  return new Map(described.scalers.map(({ type, parameters }) => [type, parameters]))
}

/**
 * The faults of a trigger, a sentence each. `authentication` are the parameters that its
 * TriggerAuthentication gives.
 */
export function triggerFaults(scalers: Scalers, trigger: Trigger, authentication: string[] = []): string[] {
  const parameters = scalers.get(trigger.type)
  if (parameters === undefined) return [`KEDA has no scaler ${trigger.type}.`]
  const faults: string[] = []
  for (const [name, value] of Object.entries(trigger.metadata)) {
    const parameter = parameters.find((one) => one.name === name)
    if (!parameter?.metadataVariableReadable) faults.push(`${trigger.type} takes no metadata ${name}.`)
    else if (typeof value !== 'string') faults.push(`${name} must be a text.`)
    else if (parameter.allowedValue && !parameter.allowedValue.includes(value))
      faults.push(`${name} must not be ${value}.`)
  }
  for (const name of authentication) {
    const parameter = parameters.find((one) => one.name === name)
    if (!parameter?.triggerAuthenticationVariableReadable)
      faults.push(`${trigger.type} takes no authentication ${name}.`)
  }
  const given = new Set([...Object.keys(trigger.metadata), ...authentication])
  for (const { name, optional, default: byDefault } of parameters) {
    if (optional !== true && byDefault === undefined && !given.has(name)) faults.push(`${trigger.type} needs ${name}.`)
  }
  return faults
}
