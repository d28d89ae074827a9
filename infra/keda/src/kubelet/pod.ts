// The fields of a pod that the kubelet of this test reads, and the status that it reports.

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
