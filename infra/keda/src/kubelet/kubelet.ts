// In place of scheduler, kubelet and network: every pod of a namespace becomes a real process on an address of its own on the loopback
// interface. It pulls no images, chooses no nodes and enforces no limits.
import { join } from 'node:path'
import type { Image } from '@spillway/docker/follow'
import type { Keeper } from '@spillway/local/processes/keeper'
import type { KubernetesApi, WatchEvent } from '../api.ts'
import type { Pod } from './pod.ts'
import { type PodRun, runPod } from './run-pod.ts'

export interface KubeletOptions {
  api: KubernetesApi
  keeper: Keeper
  namespace: string
  /** By the repository that a pod names. */
  images: Record<string, Image>
  logDir: string
  /** Prints a notice when a pod cannot be started. */
  say(sentence: string): void
}

const NODE = 'here'

export type Kubelet = ReturnType<typeof startKubelet>

/** Runs the pods of a namespace until it is closed. */
export function startKubelet({ api, keeper, namespace, images, logDir, say }: KubeletOptions) {
  const path = `/api/v1/namespaces/${namespace}/pods`
  /** By uid: every pod that was seen, those that end or have ended, and those that run. */
  const starts = new Map<string, Promise<PodRun>>()
  const ending = new Set<string>()
  const running = new Map<string, PodRun>()

  async function start(pod: Pod): Promise<PodRun> {
    const { name, uid } = pod.metadata
    const [{ image: reference }] = pod.spec.containers
    const image = images[reference.replace(/[:@].*/, '')]
    if (image === undefined) throw new Error(`there is no image ${reference}`)
    const podIp = `127.0.${1 + Math.floor(starts.size / 250)}.${1 + (starts.size % 250)}`
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: NODE } }
    await api.call('POST', `${path}/${name}/binding`, body)
    const run = await runPod({ api, keeper, pod, image, podIp, logFile: join(logDir, 'pods', `${name}.log`) })
    running.set(uid, run)
    return run
  }

  async function end({ name, uid }: Pod['metadata'], graceSeconds: number): Promise<void> {
    const run = await starts.get(uid)?.catch(() => undefined)
    await run?.end(graceSeconds)
    running.delete(uid)
    const options = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0, preconditions: { uid } }
    await api.call('DELETE', `${path}/${name}`, options).catch(() => undefined)
  }

  function onEvent({ type, object: pod }: WatchEvent<Pod>): void {
    const { uid, name, deletionTimestamp, deletionGracePeriodSeconds = 30 } = pod.metadata
    if (type === 'DELETED' || deletionTimestamp !== undefined) {
      if (ending.has(uid)) return
      ending.add(uid)
      // One that is deleted already was deleted by force, without a grace period.
      void end(pod.metadata, type === 'DELETED' ? 0 : deletionGracePeriodSeconds)
    } else if (!starts.has(uid)) {
      const started = start(pod)
      starts.set(uid, started)
      started.catch((error: unknown) =>
        say(`The pod ${name} cannot be started: ${error instanceof Error ? error.message : error}`),
      )
    }
  }

  const watching = api.watch<Pod>(path, onEvent)
  return {
    /** The running pods of a component. */
    pods: (component: string) =>
      [...running.values()].filter(({ pod }) => pod.metadata.labels?.['app.kubernetes.io/component'] === component),
    close: watching.close,
  }
}
