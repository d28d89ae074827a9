// The fields of a pod that the kubelet of this test reads, and the status that it reports.
import type { KubernetesApi } from './api.ts'

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
  securityContext?: {
    readOnlyRootFilesystem?: boolean
    allowPrivilegeEscalation?: boolean
    capabilities?: { drop?: string[] }
  }
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
    securityContext?: { runAsUser?: number; runAsGroup?: number }
    containers: [Container]
  }
}

/** The arguments of `docker run` that follow from a pod's specification. */
export function runArguments({ spec }: Pod): string[] {
  const [{ securityContext: own = {}, resources = {} }] = spec.containers
  const { runAsUser, runAsGroup = 0 } = spec.securityContext ?? {}
  const { cpu, memory } = resources.limits ?? {}
  return [
    '--network=host',
    ...(runAsUser === undefined ? [] : [`--user=${runAsUser}:${runAsGroup}`]),
    ...(own.readOnlyRootFilesystem ? ['--read-only'] : []),
    ...(own.allowPrivilegeEscalation === false ? ['--security-opt=no-new-privileges'] : []),
    ...(own.capabilities?.drop ?? []).map((name) => `--cap-drop=${name}`),
    ...(cpu === undefined ? [] : [`--cpus=${cores(cpu)}`]),
    // Kubernetes writes 256Mi, Docker 256m.
    ...(memory === undefined
      ? []
      : [`--memory=${memory.replace(/([KMG])i$/, (_, unit: string) => unit.toLowerCase())}`]),
  ]
}

export interface PodState {
  pod: Pod
  ip: string
  ready: boolean
  restarts: number
  /** Of a container that has ended for good. */
  exitCode: number | undefined
  startedAt: string
}

/** The body that reports a pod's state to the API server. */
export function statusOf({ pod, ip, ready, restarts, exitCode, startedAt }: PodState): unknown {
  const [{ name, image }] = pod.spec.containers
  const at = new Date().toISOString()
  const runs = exitCode === undefined
  const conditions = { PodScheduled: true, Initialized: true, ContainersReady: ready, Ready: ready }
  return {
    phase: runs ? 'Running' : exitCode === 0 ? 'Succeeded' : 'Failed',
    podIP: ip,
    podIPs: [{ ip }],
    startTime: startedAt,
    conditions: Object.entries(conditions).map(([type, met]) => ({
      type,
      status: met ? 'True' : 'False',
      lastTransitionTime: at,
    })),
    containerStatuses: [
      {
        ...{ name, image, imageID: '', ready, started: runs, restartCount: restarts },
        state: runs ? { running: { startedAt } } : { terminated: { exitCode, startedAt, finishedAt: at } },
      },
    ],
  }
}

/** Resolves a container's variables, in order: later ones may name earlier ones as $(NAME). */
export async function resolveEnvironment(
  api: Pick<KubernetesApi, 'call'>,
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
