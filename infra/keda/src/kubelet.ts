// In place of scheduler and kubelet: every pod of a namespace becomes a container of Docker with
// the pod's environment, user, security context and limits, on an address of its own on the
// loopback interface. It is probed, restarted and ended by the kubelet's rules.
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Keeper, stopOrder } from '@spillway/infra/processes/keeper'
import { docker } from '../../docker/src/engine.ts'
import type { KubernetesApi, WatchEvent } from './api.ts'
import { expand, type Pod, type PodState, type Probe, resolveEnvironment, runArguments, statusOf } from './pod.ts'

const RESTART_MS = 1_000
const NODE = 'here'

interface KubeletOptions {
  api: Pick<KubernetesApi, 'call' | 'watch'>
  keeper: Keeper
  namespace: string
  /** The first half of the pods' addresses, all of which this machine has. */
  network: string
  /** Images of this machine, by the repository that a pod names. */
  images: Record<string, string>
  logDir: string
  say(sentence: string): void
}

/** Runs the pods of a namespace until it is closed. Pulls no images and chooses no nodes. */
export class Kubelet {
  readonly #options: KubeletOptions
  readonly #path: string
  readonly #watching: { close(): void }
  /** By uid: every pod that was seen, and pods that end or have ended. */
  readonly #starts = new Map<string, Promise<PodRun>>()
  readonly #ending = new Set<string>()
  readonly #running = new Map<string, PodRun>()

  constructor(options: KubeletOptions) {
    this.#options = options
    this.#path = `/api/v1/namespaces/${options.namespace}/pods`
    this.#watching = options.api.watch<Pod>(this.#path, (event) => this.#onEvent(event))
  }

  pods(component: string): PodRun[] {
    const labelled = ({ pod }: PodRun) => pod.metadata.labels?.['app.kubernetes.io/component'] === component
    return [...this.#running.values()].filter(labelled)
  }

  close(): void {
    this.#watching.close()
  }

  #onEvent({ type, object: pod }: WatchEvent<Pod>): void {
    const { uid, name, deletionTimestamp, deletionGracePeriodSeconds = 30 } = pod.metadata
    if (type === 'DELETED' || deletionTimestamp !== undefined) {
      if (this.#ending.has(uid)) return
      this.#ending.add(uid)
      // A pod that is gone already was deleted by force, without a grace period.
      void this.#end(pod.metadata, type === 'DELETED' ? 0 : deletionGracePeriodSeconds)
    } else if (!this.#starts.has(uid)) {
      const started = this.#start(pod)
      this.#starts.set(uid, started)
      started.catch((error: unknown) =>
        this.#options.say(`The pod ${name} cannot be started: ${error instanceof Error ? error.message : error}`),
      )
    }
  }

  async #start(pod: Pod): Promise<PodRun> {
    const { api, images, network } = this.#options
    const { name, uid } = pod.metadata
    const [{ image: reference }] = pod.spec.containers
    const image = images[reference.replace(/[:@].*/, '')]
    if (image === undefined) throw new Error(`there is no image ${reference}`)
    const count = this.#starts.size
    const ip = `${network}.${1 + Math.floor(count / 250)}.${1 + (count % 250)}`
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: NODE } }
    await api.call('POST', `${this.#path}/${name}/binding`, body)
    const run = new PodRun(this.#options, pod, image, ip)
    await run.start()
    this.#running.set(uid, run)
    return run
  }

  async #end({ name, uid }: Pod['metadata'], graceSeconds: number): Promise<void> {
    const run = await this.#starts.get(uid)?.catch(() => undefined)
    await run?.end(graceSeconds)
    this.#running.delete(uid)
    const options = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0, preconditions: { uid } }
    await this.#options.api.call('DELETE', `${this.#path}/${name}`, options).catch(() => undefined)
  }
}

/** One pod from its start to its end. Its state is reported to the API server. */
class PodRun implements PodState {
  readonly pod: Pod
  readonly ip: string
  ready = false
  restarts = 0
  exitCode: number | undefined
  readonly startedAt = new Date().toISOString()
  readonly #options: KubeletOptions
  readonly #image: string
  #env: Record<string, string> = {}
  #ending = false
  #exited: Promise<unknown> = Promise.resolve()

  constructor(options: KubeletOptions, pod: Pod, image: string, ip: string) {
    this.#options = options
    this.pod = pod
    this.#image = image
    this.ip = ip
  }

  /** Of the current container: another one after a restart. */
  get containerName(): string {
    return `${this.pod.metadata.name}-${this.restarts}`
  }

  async start(): Promise<void> {
    this.#env = await resolveEnvironment(this.#options.api, this.pod, this.ip)
    this.#run()
    await this.#report()
  }

  /** Ends it as a deletion does: SIGTERM, the grace period, SIGKILL. Resolves when it has ended. */
  async end(graceSeconds: number): Promise<void> {
    this.#ending = true
    await docker('stop', `--time=${graceSeconds}`, this.containerName).catch(() => undefined)
    await this.#exited
  }

  /** Kills its container, which is restarted as the pod says. */
  async kill(): Promise<void> {
    await docker('kill', this.containerName).catch(() => undefined)
  }

  #run(): void {
    const { keeper, logDir } = this.#options
    const [container] = this.pod.spec.containers
    const args = container.args?.map((argument) => expand(argument, this.#env)) ?? []
    // Values come from the environment of this command, so that no list of processes shows them.
    const variables = Object.keys(this.#env).flatMap((name) => ['--env', name])
    const name = `--name=${this.containerName}`
    const logFd = openSync(join(logDir, 'pods', `${this.pod.metadata.name}.log`), 'a')
    const child = keeper.spawn({
      command: 'docker',
      args: ['run', '--rm', name, ...runArguments(this.pod), ...variables, this.#image, ...args],
      env: { PATH: process.env.PATH, HOME: process.env.HOME, DOCKER_HOST: process.env.DOCKER_HOST, ...this.#env },
      stopOrder: stopOrder.worker,
      logFd,
    })
    closeSync(logFd)
    const probing = new AbortController()
    void this.#probe(probing.signal)
    this.#exited = new Promise((resolve) => {
      child.on('exit', (code) => {
        probing.abort()
        this.ready = false
        void this.#afterExit(code ?? 137)
        resolve(code)
      })
    })
  }

  async #afterExit(exitCode: number): Promise<void> {
    const { restartPolicy } = this.pod.spec
    const restarts = restartPolicy === 'Always' || (restartPolicy === 'OnFailure' && exitCode !== 0)
    if (this.#ending || !restarts) {
      this.exitCode = exitCode
      return await this.#report()
    }
    this.restarts += 1
    await this.#report()
    await sleep(RESTART_MS)
    if (!this.#ending && !this.#options.keeper.closing) this.#run()
  }

  async #report(): Promise<void> {
    const { name, namespace } = this.pod.metadata
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/status`
    // The pod may be gone or have changed: the next report follows.
    await this.#options.api.call('PATCH', path, { status: statusOf(this) }).catch(() => undefined)
  }

  /** Probes the container until the signal is aborted. The startup probe must pass first. */
  async #probe(signal: AbortSignal): Promise<void> {
    const [{ startupProbe, readinessProbe, livenessProbe }] = this.pod.spec.containers
    if (startupProbe) {
      const outcome = await this.#repeat(startupProbe, signal, (passed, failed) => passed || failed)
      if (outcome !== 'passed') return outcome === 'failed' ? this.kill() : undefined
    }
    const onReady = (ready: boolean): void => {
      if (signal.aborted || this.ready === ready) return
      this.ready = ready
      void this.#report()
    }
    if (!readinessProbe) onReady(true)
    await Promise.all([
      readinessProbe &&
        this.#repeat(readinessProbe, signal, (passed, failed) => {
          if (passed || failed) onReady(passed)
          return false
        }),
      livenessProbe &&
        this.#repeat(livenessProbe, signal, (_passed, failed) => {
          if (failed) void this.kill()
          return failed
        }),
    ])
  }

  /** Repeats a probe until `onResult` returns true; `failed` from its failure threshold on. */
  async #repeat(probe: Probe, signal: AbortSignal, onResult: (passed: boolean, failed: boolean) => boolean) {
    // Kubernetes' own defaults.
    const { periodSeconds = 10, failureThreshold = 3 } = probe
    for (let failures = 0; !signal.aborted; ) {
      const passed = await this.#passes(probe)
      failures = passed ? 0 : failures + 1
      if (!signal.aborted && onResult(passed, failures >= failureThreshold)) return passed ? 'passed' : 'failed'
      await sleep(periodSeconds * 1_000, undefined, { signal }).catch(() => undefined)
    }
    return 'ended'
  }

  async #passes({ httpGet, timeoutSeconds = 1 }: Probe): Promise<boolean> {
    if (httpGet === undefined) return true
    const [{ ports = [] }] = this.pod.spec.containers
    const port = ports.find(({ name }) => name === httpGet.port)?.containerPort ?? httpGet.port
    const answer = fetch(`http://${this.ip}:${port}${httpGet.path}`, {
      signal: AbortSignal.timeout(timeoutSeconds * 1_000),
    })
    return await answer.then(
      ({ status }) => status >= 200 && status < 400,
      () => false,
    )
  }
}
