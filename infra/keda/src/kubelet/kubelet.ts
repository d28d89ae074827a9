// A stand-in for scheduler, kubelet and network: every pod of a namespace becomes a real process on an address of its own on
// the loopback interface. What it leaves out: images are not pulled, nodes are not chosen, limits are not enforced.
import { join } from 'node:path'
import type { Image } from '@spillway/docker/follow'
import type { Keeper } from '@spillway/local/processes/keeper'
import type { KubernetesApi, WatchEvent } from '../api.ts'
import type { Pod } from './pod.ts'
import { type PodRun, runPod } from './run-pod.ts'

export interface Kubelet {
  /** The pods of a component that run now, by name. */
  pods(component: string): PodRun[]
  close(): void
}

export interface KubeletOptions {
  api: KubernetesApi
  keeper: Keeper
  namespace: string
  /** By the repository that a pod names. */
  images: Record<string, Image>
  logDir: string
  /** Told what goes wrong with a pod. */
  say(sentence: string): void
}

const NODE = 'here'

/** Runs the pods of a namespace until it is closed. */
export function startKubelet({ api, keeper, namespace, images, logDir, say }: KubeletOptions): Kubelet {
  const path = `/api/v1/namespaces/${namespace}/pods`
  const seen = new Set<string>()
  const ending = new Set<string>()
  const runs = new Map<string, Promise<PodRun>>()
  const running = new Map<string, PodRun>()
  let addresses = 0

  async function start(pod: Pod): Promise<PodRun> {
    const { name, uid } = pod.metadata
    const [{ image: reference }] = pod.spec.containers
    const image = images[reference.replace(/[:@].*/, '')]
    if (image === undefined) throw new Error(`there is no image ${reference}`)
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: NODE } }
    await api.call('POST', `${path}/${name}/binding`, body)
    addresses += 1
    const podIp = `127.0.${1 + Math.floor(addresses / 250)}.${1 + (addresses % 250)}`
    const run = await runPod({ api, keeper, pod, image, podIp, logDir: join(logDir, 'pods') })
    running.set(uid, run)
    return run
  }

  async function end({ metadata }: Pod): Promise<void> {
    const run = await runs.get(metadata.uid)?.catch(() => undefined)
    await run?.end(metadata.deletionGracePeriodSeconds ?? 30)
    running.delete(metadata.uid)
    const preconditions = { uid: metadata.uid }
    await api
      .call('DELETE', `${path}/${metadata.name}`, {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        gracePeriodSeconds: 0,
        preconditions,
      })
      .catch(() => undefined)
  }

  function onEvent({ type, object: pod }: WatchEvent<Pod>): void {
    const { uid, name, deletionTimestamp } = pod.metadata
    if (type === 'DELETED' || deletionTimestamp !== undefined) {
      if (ending.has(uid)) return
      ending.add(uid)
      // Deleted at once, by force: no grace is left.
      const deleted =
        type === 'DELETED' ? { ...pod, metadata: { ...pod.metadata, deletionGracePeriodSeconds: 0 } } : pod
      void end(deleted)
      return
    }
    if (seen.has(uid)) return
    seen.add(uid)
    const run = start(pod)
    runs.set(uid, run)
    run.catch((error: unknown) =>
      say(`The pod ${name} cannot be started: ${error instanceof Error ? error.message : error}`),
    )
  }

  const watching = api.watch<Pod>(path, onEvent)
  return {
    pods: (component) =>
      [...running.values()].filter(({ pod }) => pod.metadata.labels?.['app.kubernetes.io/component'] === component),
    close: watching.close,
  }
}
