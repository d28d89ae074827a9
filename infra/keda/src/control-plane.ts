// A Kubernetes control plane as plain processes: etcd, the API server, and the controllers that scaling takes.
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Keeper } from '@spillway/local/processes/keeper'
import { freePort } from '@spillway/local/processes/port'
import { type Certificate, createAuthority, issue, LOOPBACK } from '@spillway/local/testing/certificates'
import { connectApi, type KubernetesApi } from './api.ts'
import { startServer } from './server.ts'

export interface ControlPlane {
  api: KubernetesApi
  url: string
  authority: Certificate
  /** For kubectl, helm and KEDA: an administrator's. */
  kubeconfig: string
  /** Of the certificates that are issued. */
  certificatesDir: string
}

export interface ControlPlaneOptions {
  keeper: Keeper
  /** Where kube-apiserver and the others are. */
  programs: string
  dir: string
  logDir: string
  /** Told when one of its programs ends before everything does. */
  onDeath(error: Error): void
}

const CONTROLLERS = [
  'deployment-controller',
  'replicaset-controller',
  'job-controller',
  'horizontal-pod-autoscaler-controller',
  'serviceaccount-controller',
  'garbage-collector-controller',
  'namespace-controller',
  'disruption-controller',
]

/** Starts a control plane. It has no node and no scheduler: pods are run by whoever watches for them. */
export async function startControlPlane({
  keeper,
  programs,
  dir,
  logDir,
  onDeath,
}: ControlPlaneOptions): Promise<ControlPlane> {
  const certificatesDir = join(dir, 'certificates')
  mkdirSync(certificatesDir, { recursive: true })
  const authority = await createAuthority(certificatesDir, 'cluster-authority')
  const frontAuthority = await createAuthority(certificatesDir, 'front-authority')
  const [server, admin, front] = await Promise.all([
    issue(certificatesDir, authority, { name: 'kube-apiserver', hosts: [...LOOPBACK, 'DNS:kubernetes.default.svc'] }),
    issue(certificatesDir, authority, { name: 'admin', group: 'system:masters' }),
    issue(certificatesDir, frontAuthority, { name: 'front-proxy' }),
  ])
  const accountKeyFile = join(certificatesDir, 'service-accounts.key')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  writeFileSync(accountKeyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })

  const [etcdPort, peerPort, apiPort] = [await freePort(0), await freePort(0), await freePort(0)]
  const etcdUrl = `http://127.0.0.1:${etcdPort}`
  await startServer({
    keeper,
    logDir,
    onDeath,
    name: 'etcd',
    command: join(programs, 'server'),
    args: [
      `--data-dir=${join(dir, 'etcd')}`,
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
      // What is lost in a crash is a test's.
      '--unsafe-no-fsync',
    ],
    isReady: async () => (await fetch(`${etcdUrl}/health`)).ok,
  })

  const url = `https://127.0.0.1:${apiPort}`
  const api = connectApi({ url, authority, client: admin })
  await startServer({
    keeper,
    logDir,
    onDeath,
    name: 'kube-apiserver',
    command: join(programs, 'kube-apiserver'),
    args: [
      `--etcd-servers=${etcdUrl}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${apiPort}`,
      `--cert-dir=${certificatesDir}`,
      `--tls-cert-file=${server.certFile}`,
      `--tls-private-key-file=${server.keyFile}`,
      `--client-ca-file=${authority.certFile}`,
      '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${accountKeyFile}`,
      `--service-account-signing-key-file=${accountKeyFile}`,
      '--service-cluster-ip-range=10.96.0.0/16',
      '--endpoint-reconciler-type=none',
      // KEDA's metrics adapter is an API server behind this one.
      `--requestheader-client-ca-file=${frontAuthority.certFile}`,
      '--requestheader-allowed-names=front-proxy',
      '--requestheader-username-headers=X-Remote-User',
      '--requestheader-group-headers=X-Remote-Group',
      '--requestheader-extra-headers-prefix=X-Remote-Extra-',
      `--proxy-client-cert-file=${front.certFile}`,
      `--proxy-client-key-file=${front.keyFile}`,
    ],
    isReady: async () =>
      (await api.call<{ kind: string }>('GET', '/api/v1/namespaces/kube-system')).kind === 'Namespace',
  })

  const kubeconfig = join(dir, 'kubeconfig.json')
  writeFileSync(kubeconfig, JSON.stringify(kubeconfigOf(url, authority, admin)), { mode: 0o600 })
  const controllersPort = await freePort(0)
  await startServer({
    keeper,
    logDir,
    onDeath,
    name: 'kube-controller-manager',
    command: join(programs, 'kube-controller-manager'),
    args: [
      `--kubeconfig=${kubeconfig}`,
      `--authentication-kubeconfig=${kubeconfig}`,
      `--authorization-kubeconfig=${kubeconfig}`,
      `--controllers=${CONTROLLERS.join(',')}`,
      `--service-account-private-key-file=${accountKeyFile}`,
      `--secure-port=${controllersPort}`,
      `--cert-dir=${certificatesDir}`,
      '--leader-elect=false',
      // The horizontal pod autoscaler looks every 15 s, as in clusters that nobody has tuned.
    ],
    // It has come to work when the first namespace has its service account.
    isReady: async () =>
      (await api.call<{ kind: string }>('GET', '/api/v1/namespaces/default/serviceaccounts/default')).kind ===
      'ServiceAccount',
  })
  return { api, url, authority, kubeconfig, certificatesDir }
}

function kubeconfigOf(server: string, authority: Certificate, client: Certificate): unknown {
  const data = (file: string): string => readFileSync(file).toString('base64')
  const name = 'spillway'
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, 'certificate-authority-data': data(authority.certFile) } }],
    users: [
      {
        name,
        user: { 'client-certificate-data': data(client.certFile), 'client-key-data': data(client.keyFile) },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name } }],
  }
}
