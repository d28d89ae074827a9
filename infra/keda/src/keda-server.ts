// The real KEDA as plain processes: its custom resources, the operator, and the metrics adapter behind the API server.
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crdDirs } from '@spillway/helm/programs'
import { freePort } from '@spillway/local/processes/port'
import { until } from '@spillway/local/processes/until'
import { issue, LOOPBACK } from '@spillway/local/rig/certificates'
import { conditionOf } from './api.ts'
import type { ControlPlane, StartProgram } from './control-plane.ts'
import type { Kubectl } from './installation.ts'

const NAMESPACE = 'keda'
const METRICS_API = 'v1beta1.external.metrics.k8s.io'

export interface KedaOptions {
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
  await kubectl.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } })
  await kubectl.applyFiles((await crdDirs()).keda)

  const certificate = await issue(certificatesDir, authority, {
    name: 'keda',
    hosts: [...LOOPBACK, `DNS:keda-metrics-apiserver.${NAMESPACE}.svc`],
  })
  const certDir = join(dir, 'keda')
  mkdirSync(certDir)
  copyFileSync(certificate.certFile, join(certDir, 'tls.crt'))
  copyFileSync(certificate.keyFile, join(certDir, 'tls.key'))
  copyFileSync(authority.certFile, join(certDir, 'ca.crt'))

  const [grpcPort, operatorPort, probePort, adapterPort, adapterMetricsPort] = await Promise.all(
    Array.from({ length: 5 }, () => freePort(0)),
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
    metadata: { name: 'keda-metrics-apiserver', namespace: NAMESPACE },
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
      service: { name: 'keda-metrics-apiserver', namespace: NAMESPACE, port: adapterPort },
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
      (await conditionOf(api, `/apis/apiregistration.k8s.io/v1/apiservices/${METRICS_API}`, 'Available')) === 'True',
  })
  await until(() => api.call('GET', '/apis/external.metrics.k8s.io/v1beta1'), {
    timeoutMs: 30_000,
    what: 'external metrics',
  })
}
