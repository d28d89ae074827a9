// KEDA and Spillway on the cluster: Spillway by its chart, with the Secrets that it names and the
// addresses of PostgreSQL and Redis.
import { randomBytes } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@spillway/infra/processes/port'
import { run } from '@spillway/infra/processes/run'
import { until } from '@spillway/infra/processes/until'
import { type Certificate, issue, LOOPBACK } from '@spillway/infra/rig/certificates'
import { newSealKey, newSigningKey } from '@spillway/infra/start/secrets'
import { parse } from 'yaml'
import { crdDirs, kedaWebhooksFile } from '../../helm/src/programs.ts'
import type { KubernetesApi } from './api.ts'
import type { ControlPlane, StartProgram } from './control-plane.ts'

export const NAMESPACE = 'login'
export const RELEASE = 'spillway'
export const KEDA_USER = 'keda'
const valuesFile = fileURLToPath(new URL('../values.yaml', import.meta.url))

interface Backends {
  databaseUrl: string
  /** host:port */
  redisAddress: string
  redisPassword: string
}

/** Creates the namespace, for restricted pods only, and the Secrets of the chart's values. */
export async function createSecrets(api: KubernetesApi, { databaseUrl, redisPassword }: Backends): Promise<void> {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  await api.call('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE, labels } })
  const opsPassword = randomBytes(12).toString('base64url')
  const secrets: Record<string, Record<string, string>> = {
    'spillway-keys': { seal: newSealKey(), jwt: newSigningKey(), opsPassword },
    'spillway-database': { url: databaseUrl },
    'spillway-redis': { password: redisPassword },
    'spillway-redis-keda': { password: redisPassword },
  }
  for (const [name, stringData] of Object.entries(secrets))
    await api.call('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, { metadata: { name }, stringData })
}

/**
 * Installs the chart in a folder, or upgrades it, and resolves when its pods are ready. `set` are
 * single values, as `path=value`.
 */
export async function installChart(
  kubectl: Kubectl,
  chart: string,
  { redisAddress }: Backends,
  gatewayUrl: string,
  set: readonly string[],
): Promise<void> {
  const values = [`redis.addresses={${redisAddress}}`, `tests.gatewayUrl=${gatewayUrl}`, ...set]
  await kubectl.helm(
    ...['upgrade', RELEASE, chart, '--install', '--wait', '--timeout', '3m', '--namespace', NAMESPACE],
    ...['--values', valuesFile, ...values.flatMap((value) => ['--set', value])],
  )
}

// kubectl, and Helm, as an administrator of the cluster.

type Kubectl = ReturnType<typeof kubectlFor>

export function kubectlFor(kubeconfig: string, kubectl: string, helm: string) {
  const env = { PATH: process.env.PATH, HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig }
  const apply = (filename: string, input = '', ...args: string[]): Promise<string> =>
    run(kubectl, ['apply', '--server-side', ...args, '--filename', filename], { env, input })
  return {
    apply: (object: unknown) => apply('-', JSON.stringify(object)),
    applyFiles: (dir: string) => apply(dir),
    /** Has the server check objects in YAML without applying them. Returns a line about each. */
    async dryRun(yaml: string, namespace: string) {
      const output = await apply('-', yaml, '--dry-run=server', '--validate=strict', '--namespace', namespace)
      return output.trim().split('\n')
    },
    helm: (...args: string[]) => run(helm, args, { env }),
  }
}

// The real KEDA as plain processes: its custom resources, the operator, and behind the API server
// the metrics adapter and the admission webhooks.

const KEDA_NAMESPACE = 'keda'
const METRICS_API = 'v1beta1.external.metrics.k8s.io'

interface KedaOptions {
  start: StartProgram
  /** The folder of the operator and the adapter. */
  programs: string
  controlPlane: ControlPlane
  kubectl: Kubectl
  dir: string
}

/** Installs KEDA and resolves once the cluster serves external metrics. */
export async function startKeda({ start, programs, controlPlane, kubectl, dir }: KedaOptions): Promise<void> {
  const { api, authority, certificatesDir, kubeconfig } = controlPlane
  await kubectl.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: KEDA_NAMESPACE } })
  await kubectl.applyFiles((await crdDirs()).keda)

  const certificate = await issue(certificatesDir, authority, {
    name: 'keda',
    hosts: [...LOOPBACK, `DNS:keda-metrics-apiserver.${KEDA_NAMESPACE}.svc`],
  })
  const certDir = join(dir, 'keda')
  mkdirSync(certDir)
  copyFileSync(certificate.certFile, join(certDir, 'tls.crt'))
  copyFileSync(certificate.keyFile, join(certDir, 'tls.key'))
  copyFileSync(authority.certFile, join(certDir, 'ca.crt'))

  const [grpcPort, operatorPort, probePort, adapterPort, adapterMetricsPort, ...webhookPorts] = await Promise.all(
    Array.from({ length: 8 }, () => freePort()),
  )
  const env = {
    KUBECONFIG: kubeconfig,
    POD_NAMESPACE: KEDA_NAMESPACE,
    KEDA_CLUSTER_OBJECT_NAMESPACE: KEDA_NAMESPACE,
    WATCH_NAMESPACE: '',
  }
  await start({
    name: 'keda-operator',
    command: join(programs, 'operator'),
    args: [
      `--cert-dir=${certDir}`,
      '--enable-cert-rotation=false',
      `--metrics-bind-address=127.0.0.1:${operatorPort}`,
      `--health-probe-bind-address=127.0.0.1:${probePort}`,
      `--metrics-service-bind-address=127.0.0.1:${grpcPort}`,
    ],
    env,
    isReady: async () => (await fetch(`http://127.0.0.1:${probePort}/readyz`)).ok,
  })

  await kubectl.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'keda-metrics-apiserver', namespace: KEDA_NAMESPACE },
    spec: { type: 'ExternalName', externalName: 'localhost' },
  })
  await kubectl.apply({
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: METRICS_API },
    spec: {
      group: 'external.metrics.k8s.io',
      version: 'v1beta1',
      groupPriorityMinimum: 100,
      versionPriority: 100,
      service: { name: 'keda-metrics-apiserver', namespace: KEDA_NAMESPACE, port: adapterPort },
      caBundle: readFileSync(authority.certFile).toString('base64'),
    },
  })
  await start({
    name: 'keda-adapter',
    command: join(programs, 'adapter'),
    args: [
      '--bind-address=127.0.0.1',
      `--secure-port=${adapterPort}`,
      `--port=${adapterMetricsPort}`,
      `--cert-dir=${certDir}`,
      `--client-ca-file=${join(certDir, 'ca.crt')}`,
      `--tls-cert-file=${join(certDir, 'tls.crt')}`,
      `--tls-private-key-file=${join(certDir, 'tls.key')}`,
      `--metrics-service-address=localhost:${grpcPort}`,
      ...['lister-kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map(
        (flag) => `--${flag}=${kubeconfig}`,
      ),
    ],
    env,
    isReady: async () =>
      (await api.conditionOf(`/apis/apiregistration.k8s.io/v1/apiservices/${METRICS_API}`, 'Available')) === 'True',
  })
  await until(() => api.call('GET', '/apis/external.metrics.k8s.io/v1beta1'), {
    timeoutMs: 30_000,
    what: 'external metrics',
  })

  const [port, metricsPort, healthPort] = webhookPorts
  await start({
    name: 'keda-webhooks',
    command: join(programs, 'webhooks'),
    args: [
      `--cert-dir=${certDir}`,
      `--port=${port}`,
      `--metrics-bind-address=127.0.0.1:${metricsPort}`,
      `--health-probe-bind-address=127.0.0.1:${healthPort}`,
    ],
    env,
    isReady: async () => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).ok,
  })
  await kubectl.apply(
    webhooksAt(`https://127.0.0.1:${port}`, authority, await readFile(await kedaWebhooksFile(), 'utf8')),
  )
  const probe = { scaleTargetRef: { name: 'nothing' }, triggers: [{ type: 'cron', metadata: {} }] }
  const object = { apiVersion: 'keda.sh/v1alpha1', kind: 'ScaledObject', metadata: { name: 'probe' }, spec: probe }
  await until(() => kubectl.dryRun(JSON.stringify(object), KEDA_NAMESPACE), {
    timeoutMs: 30_000,
    what: "KEDA's webhooks",
  })
}

/** KEDA's configuration of its webhooks, at this URL, and not passed over when they do not answer. */
function webhooksAt(url: string, authority: Certificate, configuration: string): unknown {
  const caBundle = readFileSync(authority.certFile).toString('base64')
  const { webhooks, ...rest }: { webhooks: { clientConfig: { service: { path: string } } }[] } = parse(configuration)
  const here = webhooks.map(({ clientConfig, ...webhook }) => ({
    ...webhook,
    clientConfig: { url: `${url}${clientConfig.service.path}`, caBundle },
    failurePolicy: 'Fail',
  }))
  return { ...rest, webhooks: here }
}
