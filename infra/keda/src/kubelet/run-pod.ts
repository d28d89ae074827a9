// One pod from its start to its end: a real process in the pod's own environment, probed, restarted and ended by the kubelet's rules.
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Keeper, stopOrder } from '@spillway/infra/processes/keeper'
import type { Image } from '../../../docker/src/follow.ts'
import { containerCommand } from '../../../docker/src/oci.ts'
import type { KubernetesApi, WatchEvent } from '../api.ts'
import { type Container, expand, type Pod, type PodState, type Probe, resolveEnvironment, statusOf } from './pod.ts'

interface PodRun {
  pod: Pod
  state: PodState
  /** The current process. */
  pid: number | undefined
  /** Ends it as a deletion does: SIGTERM, the grace period, SIGKILL. Resolves when it has ended. */
  end(graceSeconds: number): Promise<void>
}

interface PodRunOptions {
  api: KubernetesApi
  keeper: Keeper
  pod: Pod
  image: Image
  podIp: string
  logFile: string
}

const RESTART_MS = 1_000

/** Starts a pod and reports its state to the API server. Its process ends with this one at the latest. */
async function runPod({ api, keeper, pod, image, podIp, logFile }: PodRunOptions): Promise<PodRun> {
  const { metadata, spec } = pod
  const [container] = spec.containers
  const env = await resolveEnvironment(api, pod, podIp)
  const state: PodState = { phase: 'Running', podIp, ready: false, restarts: 0, startedAt: new Date().toISOString() }
  let ending = false
  let exited: Promise<unknown> = Promise.resolve()

  async function report(): Promise<void> {
    const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/status`
    // The pod may be gone or have changed: the next report follows.
    await api.call('PATCH', path, { status: statusOf(container, state) }).catch(() => undefined)
  }

  const run: PodRun = {
    pod,
    state,
    pid: undefined,
    async end(graceSeconds) {
      ending = true
      const until = Date.now() + graceSeconds * 1_000
      signal('SIGTERM')
      const timer = setTimeout(() => signal('SIGKILL'), Math.max(0, until - Date.now()))
      await exited
      clearTimeout(timer)
    },
  }

  function signal(name: NodeJS.Signals): void {
    try {
      if (run.pid !== undefined) process.kill(run.pid, name)
    } catch {
      // It has ended already.
    }
  }

  function start(): void {
    const logFd = openSync(logFile, 'a')
    const args = container.args?.map((argument) => expand(argument, env))
    const command = containerCommand(image, { env, ...(args ? { args } : {}) })
    const child = keeper.spawn({ ...command, stopOrder: stopOrder.worker, logFd })
    closeSync(logFd)
    run.pid = child.pid
    const probing = new AbortController()
    const onReady = (ready: boolean): void => {
      if (state.ready === ready) return
      state.ready = ready
      void report()
    }
    void probe(container, podIp, { onReady, onDead: () => signal('SIGKILL') }, probing.signal)
    exited = new Promise((resolve) => {
      child.on('exit', (code) => {
        probing.abort()
        run.pid = undefined
        state.ready = false
        void afterExit(code ?? 137)
        resolve(code)
      })
    })
  }

  async function afterExit(exitCode: number): Promise<void> {
    const restarts = spec.restartPolicy === 'Always' || (spec.restartPolicy === 'OnFailure' && exitCode !== 0)
    if (ending || !restarts) {
      Object.assign(state, { phase: exitCode === 0 ? 'Succeeded' : 'Failed', exitCode })
      return await report()
    }
    state.restarts += 1
    await report()
    await sleep(RESTART_MS)
    if (!ending && !keeper.closing) start()
  }

  start()
  await report()
  return run
}

/** The probes of a container, by the kubelet's rules: the others begin once the startup probe has passed. */
interface ProbeListener {
  onReady(ready: boolean): void
  /** The container did not start, or does not live: it is to be restarted. */
  onDead(): void
}

/** Kubernetes' own defaults. */
const defaults = { periodSeconds: 10, timeoutSeconds: 1, failureThreshold: 3 }

/** Probes a container until the signal is aborted. */
async function probe(
  { ports = [], startupProbe, readinessProbe, livenessProbe }: Container,
  podIp: string,
  { onReady, onDead }: ProbeListener,
  signal: AbortSignal,
): Promise<void> {
  /** Repeats a probe until `onResult` returns true; `failed` once it has failed as often as its threshold says. */
  async function repeat(given: Probe, onResult: (passed: boolean, failed: boolean) => boolean): Promise<void> {
    const { periodSeconds, failureThreshold } = { ...defaults, ...given }
    for (let failures = 0; !signal.aborted; ) {
      const passed = await passes(given)
      failures = passed ? 0 : failures + 1
      if (signal.aborted || onResult(passed, failures >= failureThreshold)) return
      await sleep(periodSeconds * 1_000, undefined, { signal }).catch(() => undefined)
    }
  }

  async function passes(given: Probe): Promise<boolean> {
    const { httpGet, timeoutSeconds } = { ...defaults, ...given }
    if (httpGet === undefined) return true
    const port = ports.find(({ name }) => name === httpGet.port)?.containerPort ?? httpGet.port
    const answer = fetch(`http://${podIp}:${port}${httpGet.path}`, {
      signal: AbortSignal.timeout(timeoutSeconds * 1_000),
    })
    return await answer.then(
      ({ status }) => status >= 200 && status < 400,
      () => false,
    )
  }

  if (startupProbe) {
    let started = false
    await repeat(startupProbe, (passed, failed) => {
      started = passed
      return passed || failed
    })
    if (!started) return signal.aborted ? undefined : onDead()
  }
  if (!readinessProbe) onReady(!signal.aborted)
  await Promise.all([
    readinessProbe &&
      repeat(readinessProbe, (passed, failed) => {
        if (passed || failed) onReady(passed)
        return false
      }),
    livenessProbe &&
      repeat(livenessProbe, (_passed, failed) => {
        if (failed) onDead()
        return failed
      }),
  ])
}

/**
 * In place of scheduler, kubelet and network: every pod of a namespace becomes a real process on an address of its own on the loopback
 * interface. It pulls no images, chooses no nodes and enforces no limits.
 */
interface KubeletOptions {
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
