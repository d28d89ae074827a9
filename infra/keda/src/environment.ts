// Everything that the end-to-end test runs on: programs, services, cluster, KEDA and Spillway,
// started in this order.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { defaultStateDir, repositoryDir } from '@spillway/infra/processes/repository'
import { run } from '@spillway/infra/processes/run'
import { type Address, startProxy } from '@spillway/infra/rig/tcp-proxy'
import { startPostgres } from '@spillway/infra/services/postgres'
import { type RedisOptions, startRedis } from '@spillway/infra/services/redis'
import { Redis } from 'ioredis'
import { buildImages, images, openDocker } from '../../docker/src/engine.ts'
import { chartDir } from '../../helm/src/chart.ts'
import { buildPrograms, crdDirs } from '../../helm/src/programs.ts'
import { programStarter, startControlPlane } from './control-plane.ts'
import { createSecrets, installChart, KEDA_USER, kubectlFor, NAMESPACE, startKeda } from './installation.ts'
import { Kubelet } from './kubelet.ts'
import type { Steps } from './steps.ts'

export type Environment = Awaited<ReturnType<typeof startEnvironment>>

/** Of logs and figures. */
export const outputDir = join(defaultStateDir, 'e2e')

const GATEWAY_PORT = 3_000
/** A commit whose chart is upgraded to the present one; after a release, the release. */
const EARLIER_COMMIT = '558bb9fb'
/** The first half of the addresses of pods. Not loopback ones, which Kubernetes refuses in an EndpointSlice. */
const POD_NETWORK = '10.232'
const PASSWORD = 'only-for-this-run'

/** Starts it all, a step at a time. Its processes end with the keeper. */
export async function startEnvironment(keeper: Keeper, steps: Steps, say: (line: string) => void) {
  const dir = outputDir
  rmSync(dir, { recursive: true, force: true })
  const logDir = join(dir, 'logs')
  mkdirSync(join(logDir, 'pods'), { recursive: true })

  const { checks, kubernetes, keda } = await steps.step('programs and images are built', async () => {
    await openDocker(keeper)
    await buildImages(say)
    return {
      checks: await buildPrograms('checks', say),
      kubernetes: await buildPrograms('kubernetes', say),
      keda: await buildPrograms('keda', say),
    }
  })
  const helm = join(checks, 'helm')

  const shared = { password: PASSWORD, keeper, say }
  const placeOf = (name: string) => ({ ...shared, dir: join(dir, name), logFile: join(logDir, `${name}.log`) })
  const [postgres, redis, secondRedis] = await Promise.all([
    startPostgres({ ...placeOf('postgres'), durable: false }),
    startRestartableRedis({ ...placeOf('redis'), durable: true }, KEDA_USER),
    startRestartableRedis({ ...placeOf('second-redis'), durable: true }, KEDA_USER),
  ])
  const backends = { databaseUrl: postgres.url, redisAddress: redis.address, redisPassword: PASSWORD }

  const start = programStarter(keeper, logDir, (error) => steps.fail(error))
  const controlPlane = await steps.step('etcd, kube-apiserver and kube-controller-manager run', () =>
    startControlPlane(start, kubernetes, dir),
  )
  const { api, kubeconfig } = controlPlane
  const kubectl = kubectlFor(kubeconfig, join(kubernetes, 'kubectl'), helm)
  await steps.step('KEDA runs, and the cluster serves external metrics', async () => {
    await startKeda({ start, programs: keda, controlPlane, kubectl, dir })
    const { monitoring, gateway } = await crdDirs()
    await Promise.all([monitoring, gateway].map((crds) => kubectl.applyFiles(crds)))
  })

  await createSecrets(api, backends)
  const route = ['local', `${POD_NETWORK}.0.0/16`, 'dev', 'lo']
  await run('ip', ['route', 'replace', ...route])
  keeper.onClosing(() => void run('ip', ['route', 'del', ...route]).catch(() => {}))
  const kubelet = new Kubelet({
    api,
    keeper,
    namespace: NAMESPACE,
    network: POD_NETWORK,
    images: { 'spillway/gateway': images.gateway, 'spillway/worker': images.worker },
    logDir,
    say,
  })
  const service = await startProxy('http://gateway', takeTurns(kubelet))
  const gatewayUrl = new URL(service.url).origin
  /** Installs the chart, or upgrades it, with these single values (`path=value`). */
  const install = (...set: string[]) => installChart(kubectl, chartDir, backends, gatewayUrl, set)
  const archive = join(dir, 'earlier.tar')
  await run('git', ['archive', `--output=${archive}`, EARLIER_COMMIT, 'infra/helm/spillway'], { cwd: repositoryDir })
  await run('tar', ['--extract', '--file', archive, '--directory', dir])
  await steps.step('helm installs the chart: the hook migrates, and all pods become ready', () => install())
  return {
    api,
    kubectl,
    kubelet,
    install,
    /** The same with the chart of an earlier commit. Its pods differ, because unchanged ones would stay. */
    installEarlier: () =>
      installChart(kubectl, join(dir, 'infra/helm/spillway'), backends, gatewayUrl, [
        'gateway.podAnnotations.chart=earlier',
        'worker.podAnnotations.chart=earlier',
      ]),
    databaseUrl: postgres.url,
    redis,
    /** Another one, which the chart as it is installed first does not name. */
    secondRedis,
    gatewayUrl,
    helm,
    async close() {
      kubelet.close()
      await service.close()
      api.close()
      await redis.close()
      await secondRedis.close()
      await postgres.close()
    },
  }
}

/** In place of a Service: the gateways that are ready at each new connection, in turn. */
function takeTurns(kubelet: Kubelet): () => Address | undefined {
  let turn = 0
  return () => {
    const ready = kubelet.pods('gateway').filter((run) => run.ready)
    const pod = ready[turn++ % ready.length]
    return pod && { host: pod.ip, port: GATEWAY_PORT }
  }
}

/** The rights of KEDA's user, as in the chart's README: to count, and nothing else. */
const KEDA_RIGHTS = '~{spillway}:passwords:* resetchannels -@all +hello +ping +select +eval +type +llen +zcard'

/** Starts Redis with a user for KEDA, with the password of the default user. */
async function startRestartableRedis(options: RedisOptions, kedaUser: string) {
  const service = await startRedis(options)
  const addUser = () =>
    service.command('ACL', 'SETUSER', kedaUser, 'on', `>${options.password}`, ...KEDA_RIGHTS.split(' '))
  await addUser()
  const connection = new Redis(service.url, { enableOfflineQueue: false, retryStrategy: () => 100 })
  connection.on('error', () => {})
  return {
    url: service.url,
    /** host:port */
    address: new URL(service.url).host,
    /** A connection that comes back with the server. */
    connection,
    stop: () => service.close(),
    async startAgain() {
      await service.start()
      await addUser()
    },
    async close() {
      connection.disconnect()
      await service.close()
    },
  }
}
