// The real KEDA as plain processes: its custom resources, the operator, and behind the API server
// the metrics adapter and the admission webhooks.
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { issue, LOOPBACK } from '@spillway/infra/harness/certificates'
import { freePort } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { parse } from 'yaml'
import { crdDirs, kedaWebhooksFile, programSetDir } from '../../helm/src/programs.ts'
import { type Cluster, outputDir } from './cluster.ts'

const NAMESPACE = 'keda'
const METRICS_API = 'v1beta1.external.metrics.k8s.io'
const SERVICE = 'keda-metrics-apiserver'

/** Installs KEDA, and resolves once it serves metrics and webhooks. */
export async function startKeda(cluster: Cluster): Promise<void> {
  const programs = await programSetDir('keda')
  const { start, authority, kubeconfig, kubectl, read } = cluster
  await kubectl.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } })
  await kubectl.applyFiles((await crdDirs()).keda)

  const hosts = [...LOOPBACK, `DNS:${SERVICE}.${NAMESPACE}.svc`]
  const certificate = await issue(outputDir, authority, { name: 'keda', hosts })
  const certDir = join(outputDir, 'keda')
  mkdirSync(certDir)
  copyFileSync(certificate.certFile, join(certDir, 'tls.crt'))
  copyFileSync(certificate.keyFile, join(certDir, 'tls.key'))
  copyFileSync(authority.certFile, join(certDir, 'ca.crt'))
  const caBundle = readFileSync(authority.certFile).toString('base64')

  const [grpcPort, operatorPort, probePort, adapterPort, adapterMetricsPort, ...webhookPorts] = await Promise.all(
    Array.from({ length: 8 }, () => freePort()),
  )
  const env = {
    KUBECONFIG: kubeconfig,
    POD_NAMESPACE: NAMESPACE,
    KEDA_CLUSTER_OBJECT_NAMESPACE: NAMESPACE,
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
    metadata: { name: SERVICE, namespace: NAMESPACE },
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
      service: { name: SERVICE, namespace: NAMESPACE, port: adapterPort },
      caBundle,
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
    isReady: async () => (await read('/apis/external.metrics.k8s.io/v1beta1')) !== undefined,
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
  const configuration: { webhooks: { clientConfig: { service: { path: string } } }[] } = parse(
    readFileSync(await kedaWebhooksFile(), 'utf8'),
  )
  // Not passed over when they do not answer.
  const webhooks = configuration.webhooks.map(({ clientConfig, ...webhook }) => ({
    ...webhook,
    clientConfig: { url: `https://127.0.0.1:${port}${clientConfig.service.path}`, caBundle },
    failurePolicy: 'Fail',
  }))
  await kubectl.apply({ ...configuration, webhooks })
  const probe = { scaleTargetRef: { name: 'nothing' }, triggers: [{ type: 'cron', metadata: {} }] }
  const metadata = { name: 'probe', namespace: NAMESPACE }
  const object = { apiVersion: 'keda.sh/v1alpha1', kind: 'ScaledObject', metadata, spec: probe }
  await until(() => kubectl.apply(object, '--dry-run=server'), { what: "KEDA's webhooks" })
}
