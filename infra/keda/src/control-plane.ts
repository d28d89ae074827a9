// A Kubernetes control plane as plain processes: etcd, the API server, and the controllers that
// scaling takes.
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Keeper, logTailOf } from '@spillway/infra/processes/keeper'
import { freePort } from '@spillway/infra/processes/port'
import { type Certificate, createAuthority, issue, LOOPBACK } from '@spillway/infra/rig/certificates'
import { startService } from '@spillway/infra/services/service'
import { KubernetesApi } from './api.ts'

interface ClusterProgram {
  name: string
  command: string
  args: string[]
  env?: NodeJS.ProcessEnv
  /** Resolves to true once it answers. */
  isReady(): Promise<boolean>
}

/** Starts a program of the cluster, and resolves once it answers. */
export type StartProgram = (program: ClusterProgram) => Promise<void>

export type ControlPlane = Awaited<ReturnType<typeof startControlPlane>>

/** @param onDeath called when a program ends before everything does */
export function programStarter(keeper: Keeper, logDir: string, onDeath: (error: Error) => void): StartProgram {
  return async ({ name, command, args, env, isReady }) => {
    const logFile = join(logDir, `${name}.log`)
    const started = { command, args, env: { PATH: process.env.PATH, HOME: logDir, ...env } }
    const service = await startService({ keeper, name, logFile, url: '', process: started, ping: isReady })
    void service.exited.then(() => {
      if (!keeper.closing) onDeath(new Error(`${name} ended: ${logTailOf(logFile)} (its log: ${logFile})`))
    })
  }
}

const CONTROLLERS = [
  'deployment-controller',
  'replicaset-controller',
  'endpointslice-controller',
  'job-controller',
  'horizontal-pod-autoscaler-controller',
  'serviceaccount-controller',
  'garbage-collector-controller',
  'namespace-controller',
  'disruption-controller',
]

/**
 * Starts a control plane. It has no node and no scheduler: the kubelet of this test runs the pods.
 *
 * @param programs the folder of kube-apiserver and the others
 */
export async function startControlPlane(start: StartProgram, programs: string, dir: string) {
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

  const [etcdPort, peerPort, apiPort] = [await freePort(), await freePort(), await freePort()]
  const etcdUrl = `http://127.0.0.1:${etcdPort}`
  await start({
    name: 'etcd',
    command: join(programs, 'server'),
    args: [
      `--data-dir=${join(dir, 'etcd')}`,
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
      // The data of a test may be lost in a crash.
      '--unsafe-no-fsync',
    ],
    isReady: async () => (await fetch(`${etcdUrl}/health`)).ok,
  })

  const url = `https://127.0.0.1:${apiPort}`
  const api = new KubernetesApi(url, authority, admin)
  const exists = async (path: string): Promise<boolean> => (await api.call('GET', path)) !== undefined
  await start({
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
    isReady: () => exists('/api/v1/namespaces/kube-system'),
  })

  const kubeconfig = join(dir, 'kubeconfig.json')
  writeFileSync(kubeconfig, JSON.stringify(kubeconfigOf(url, authority, admin)), { mode: 0o600 })
  await start({
    name: 'kube-controller-manager',
    command: join(programs, 'kube-controller-manager'),
    args: [
      `--kubeconfig=${kubeconfig}`,
      `--authentication-kubeconfig=${kubeconfig}`,
      `--authorization-kubeconfig=${kubeconfig}`,
      `--controllers=${CONTROLLERS.join(',')}`,
      `--service-account-private-key-file=${accountKeyFile}`,
      `--secure-port=${await freePort()}`,
      `--cert-dir=${certificatesDir}`,
      '--leader-elect=false',
      // The horizontal pod autoscaler looks every 15 s, its default.
    ],
    // It works once the first namespace has its service account.
    isReady: () => exists('/api/v1/namespaces/default/serviceaccounts/default'),
  })
  return {
    api,
    authority,
    /** An administrator's, for kubectl, helm and KEDA. */
    kubeconfig,
    certificatesDir,
  }
}

function kubeconfigOf(server: string, authority: Certificate, { certFile, keyFile }: Certificate): unknown {
  const base64 = (file: string): string => readFileSync(file).toString('base64')
  const name = 'spillway'
  const user = { 'client-certificate-data': base64(certFile), 'client-key-data': base64(keyFile) }
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(authority.certFile) } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  }
}
