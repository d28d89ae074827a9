// The fields of a pod that the kubelet of this test reads, and the status that it reports.
import type { KubernetesApi } from '../api.ts'

export interface EnvVar {
  name: string
  value?: string
  valueFrom?: {
    secretKeyRef?: { name: string; key: string }
    fieldRef?: { fieldPath: string }
    resourceFieldRef?: { resource: string; divisor?: string }
  }
}

export interface Probe {
  httpGet?: { path: string; port: string | number }
  periodSeconds?: number
  timeoutSeconds?: number
  failureThreshold?: number
}

export interface Container {
  name: string
  image: string
  args?: string[]
  env?: EnvVar[]
  ports?: { name?: string; containerPort: number }[]
  resources?: { limits?: Record<string, string> }
  startupProbe?: Probe
  readinessProbe?: Probe
  livenessProbe?: Probe
}

export interface Pod {
  metadata: {
    name: string
    namespace: string
    uid: string
    labels?: Record<string, string>
    deletionTimestamp?: string
    deletionGracePeriodSeconds?: number
  }
  spec: {
    restartPolicy: 'Always' | 'OnFailure' | 'Never'
    terminationGracePeriodSeconds: number
    containers: [Container]
  }
}

export interface PodState {
  phase: 'Running' | 'Succeeded' | 'Failed'
  podIp: string
  ready: boolean
  restarts: number
  exitCode?: number
  startedAt: string
}

/** The body that reports a pod's state to the API server. */
export function statusOf({ name, image }: Container, state: PodState): unknown {
  const { phase, podIp, ready, restarts, exitCode, startedAt } = state
  const at = new Date().toISOString()
  const started = exitCode === undefined
  const conditions = { PodScheduled: true, Initialized: true, ContainersReady: ready, Ready: ready }
  return {
    phase,
    podIP: podIp,
    podIPs: [{ ip: podIp }],
    startTime: startedAt,
    conditions: Object.entries(conditions).map(([type, met]) => ({
      type,
      status: met ? 'True' : 'False',
      lastTransitionTime: at,
    })),
    containerStatuses: [
      {
        ...{ name, image, imageID: '', ready, started, restartCount: restarts },
        state: started ? { running: { startedAt } } : { terminated: { exitCode, startedAt, finishedAt: at } },
      },
    ],
  }
}

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
