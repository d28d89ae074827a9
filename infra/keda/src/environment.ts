// Everything that the end-to-end test runs on: programs, services, cluster, KEDA and Spillway, started in this order.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildImages } from '@spillway/docker/images'
import { crdDirs } from '@spillway/helm/modules'
import { buildPrograms } from '@spillway/helm/programs'
import type { Keeper } from '@spillway/local/processes/keeper'
import { defaultStateDir, programsDir } from '@spillway/local/processes/repository'
import { startPostgres } from '@spillway/local/services/postgres'
import { query } from '@spillway/local/services/query'
import { type Address, startProxy } from '@spillway/local/testing/tcp-proxy'
import { type ControlPlane, startControlPlane } from './control-plane.ts'
import { type Backends, createSecrets, installChart, KEDA_USER, NAMESPACE } from './installation.ts'
import { startKeda } from './keda-server.ts'
import { type Kubectl, kubectlFor } from './kubectl.ts'
import { type Kubelet, startKubelet } from './kubelet/kubelet.ts'
import { type RestartableRedis, startRestartableRedis } from './restartable-redis.ts'
import type { Steps } from './steps.ts'

export interface Environment {
  controlPlane: ControlPlane
  kubectl: Kubectl
  kubelet: Kubelet
  backends: Backends
  redis: RestartableRedis
  /** Where clients find the gateways. */
  gateway: { url: string }
  /** Where Helm is. */
  helm: string
  /** Where everything writes its log. */
  logDir: string
  close(): Promise<void>
}

const GATEWAY_PORT = 3_000
const PASSWORD = 'only-for-this-run'

/** Starts it all, a step at a time. Its processes end with the keeper. */
export async function startEnvironment(
  keeper: Keeper,
  { step, fail }: Steps,
  say: (line: string) => void,
): Promise<Environment> {
  const dir = join(defaultStateDir, 'e2e')
  rmSync(dir, { recursive: true, force: true })
  const logDir = join(dir, 'logs')
  mkdirSync(join(logDir, 'pods'), { recursive: true })

  const programs = { checks: '', kubernetes: '', keda: '' }
  let images: Awaited<ReturnType<typeof buildImages>> | undefined
  await step('programs and images are built', async () => {
    for (const set of ['checks', 'kubernetes', 'keda'] as const) programs[set] = await buildPrograms(set, say)
    images = await buildImages(say)
    return undefined
  })
  if (images === undefined) throw new Error('no images')

  const services = { password: PASSWORD, keeper, programsDir, say, preferredPort: 0 }
  const [postgres, redis] = await Promise.all([
    startPostgres({ ...services, dir: join(dir, 'postgres'), logFile: join(logDir, 'postgres.log'), durable: false }),
    startRestartableRedis(
      { ...services, dir: join(dir, 'redis'), logFile: join(logDir, 'redis.log'), durable: true },
      KEDA_USER,
    ),
  ])
  const backends = { databaseUrl: postgres.url, redisAddress: redis.address, redisPassword: PASSWORD }

  let controlPlane: ControlPlane | undefined
  await step('etcd, kube-apiserver and kube-controller-manager run', async () => {
    controlPlane = await startControlPlane({ keeper, programs: programs.kubernetes, dir, logDir, onDeath: fail })
    return undefined
  })
  if (controlPlane === undefined) throw new Error('no control plane')
  const { api, kubeconfig } = controlPlane
  const kubectl = kubectlFor(kubeconfig, programs)
  const started = { controlPlane, keeper, kubectl, dir, logDir, onDeath: fail }
  await step('KEDA runs, and the cluster serves external metrics', async () => {
    await startKeda({ ...started, programs: programs.keda })
    const { monitoring, gateway } = await crdDirs()
    await Promise.all([monitoring, gateway].map((crds) => kubectl.applyFiles(crds)))
    return undefined
  })

  await createSecrets(api, backends)
  const kubelet = startKubelet({
    api,
    keeper,
    namespace: NAMESPACE,
    images: { 'spillway/gateway': images.gateway, 'spillway/worker': images.worker },
    logDir,
    say,
  })
  const service = await startProxy('http://gateway', takeTurns(kubelet))
  const gateway = { url: new URL(service.url).origin }
  await step('helm installs the chart: the hook migrates, and all pods become ready', async () => {
    await installChart(kubectl, backends, gateway.url)
    return undefined
  })
  return {
    controlPlane,
    kubectl,
    kubelet,
    backends,
    redis,
    gateway,
    helm: join(programs.checks, 'helm'),
    logDir,
    async close() {
      kubelet.close()
      await service.close()
      api.close()
      await redis.close()
      await postgres.close()
    },
  }
}

/** In place of a Service: the gateways that are ready at each new connection, in turn. */
function takeTurns(kubelet: Kubelet): () => Address | undefined {
  let turn = 0
  return () => {
    const ready = kubelet.pods('gateway').filter(({ state }) => state.ready)
    const pod = ready[turn++ % ready.length]
    return pod && { host: pod.state.podIp, port: GATEWAY_PORT }
  }
}

/** Makes accounts whose hash takes this long to verify, whatever the password, and gives their addresses. */
export async function createAccounts(
  databaseUrl: string,
  name: string,
  count: number,
  hashMs: number,
): Promise<string[]> {
  const rows = await query(
    databaseUrl,
    `INSERT INTO users (id, email, password_hash, updated_at)
     SELECT gen_random_uuid(), $1 || '-' || n || '@example.com', $2, now() FROM generate_series(1, $3::int) AS n
     RETURNING email`,
    [name, `$spillway-wait$${hashMs}$`, count],
  )
  return rows.map(({ email }) => String(email))
}
