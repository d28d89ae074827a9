// The environment of a container by the rules of Kubernetes.
import type { KubernetesApi } from '../api.ts'
import type { Container, EnvVar, Pod } from './pod.ts'

/** Resolves a container's variables, in order: later ones may name earlier ones as $(NAME). */
export async function resolveEnvironment(
  api: KubernetesApi,
  { metadata, spec }: Pod,
  podIp: string,
): Promise<Record<string, string>> {
  const [container] = spec.containers
  const env: Record<string, string> = {}
  const fields: Record<string, string> = {
    'metadata.name': metadata.name,
    'metadata.namespace': metadata.namespace,
    'status.podIP': podIp,
  }
  for (const variable of container.env ?? []) env[variable.name] = await resolve(variable)
  return env

  async function resolve({ name, value, valueFrom }: EnvVar): Promise<string> {
    if (valueFrom?.secretKeyRef) return await secret(valueFrom.secretKeyRef)
    if (valueFrom?.resourceFieldRef) return cpuLimit(container, valueFrom.resourceFieldRef)
    if (valueFrom?.fieldRef) {
      const field = fields[valueFrom.fieldRef.fieldPath]
      if (field === undefined)
        throw new Error(`${name}: the field ${valueFrom.fieldRef.fieldPath} is not supported here`)
      return field
    }
    return expand(value ?? '', env)
  }

  async function secret(reference: { name: string; key: string }): Promise<string> {
    const path = `/api/v1/namespaces/${metadata.namespace}/secrets/${reference.name}`
    const { data } = await api.call<{ data: Record<string, string> }>('GET', path)
    const encoded = data[reference.key]
    if (encoded === undefined) throw new Error(`the Secret ${reference.name} has no key ${reference.key}`)
    return Buffer.from(encoded, 'base64').toString()
  }
}

/** Replaces $(NAME) by the variable and $$ by a dollar; an unknown $(NAME) stays. */
export function expand(text: string, env: Record<string, string>): string {
  return text.replace(/\$\$|\$\((\w+)\)/g, (found, name: string | undefined) =>
    name === undefined ? '$' : (env[name] ?? found),
  )
}

/** The limit on processors in units of the divisor, rounded up as the kubelet does. */
function cpuLimit({ resources }: Container, reference: { resource: string; divisor?: string }): string {
  const limit = resources?.limits?.cpu
  if (reference.resource !== 'limits.cpu' || limit === undefined)
    throw new Error(`${reference.resource} is not supported here`)
  return String(Math.ceil(cores(limit) / cores(reference.divisor ?? '1')))
}

function cores(quantity: string): number {
  return quantity.endsWith('m') ? Number(quantity.slice(0, -1)) / 1_000 : Number(quantity)
}
