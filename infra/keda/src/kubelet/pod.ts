// A pod as far as the stand-in for the kubelet reads it: one container, its environment, its probes, its end.

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
  lifecycle?: { preStop?: { sleep?: { seconds: number } } }
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
    nodeName?: string
    restartPolicy: 'Always' | 'OnFailure' | 'Never'
    terminationGracePeriodSeconds: number
    containers: [Container]
  }
}

/** What becomes of a pod, as its status says it. */
export interface PodState {
  phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed'
  podIp: string
  ready: boolean
  restarts: number
  exitCode?: number
  startedAt: string
}

/** The body that reports a pod's state to the API server. */
export function statusOf(container: Container, state: PodState): unknown {
  const { phase, podIp, ready, restarts, exitCode, startedAt } = state
  const at = new Date().toISOString()
  const condition = (type: string, met: boolean): unknown => ({
    type,
    status: met ? 'True' : 'False',
    lastTransitionTime: at,
  })
  const running = exitCode === undefined
  return {
    phase,
    podIP: podIp,
    podIPs: [{ ip: podIp }],
    startTime: startedAt,
    conditions: [
      condition('PodScheduled', true),
      condition('Initialized', true),
      condition('ContainersReady', ready),
      condition('Ready', ready),
    ],
    containerStatuses: [
      {
        name: container.name,
        image: container.image,
        imageID: '',
        ready,
        started: running,
        restartCount: restarts,
        state: running ? { running: { startedAt } } : { terminated: { exitCode, startedAt, finishedAt: at } },
      },
    ],
  }
}
