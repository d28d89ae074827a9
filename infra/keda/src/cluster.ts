// A Kubernetes cluster of one node on this machine: etcd, the control plane, the scheduler, the
// kubelet with containerd and runc, and kube-proxy, each a plain process. They end with the namespaces
// that package.json starts all of this in.
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Certificate, createAuthority, issue, LOOPBACK } from '@spillway/infra/harness/certificates'
import { type Keeper, logTailOf } from '@spillway/infra/processes/keeper'
import { freePort } from '@spillway/infra/processes/port'
import { defaultStateDir } from '@spillway/infra/processes/repository'
import { run } from '@spillway/infra/processes/run'
import { startService } from '@spillway/infra/services/service'
import { programSetDir } from '../../helm/src/programs.ts'

export const outputDir = join(defaultStateDir, 'e2e')
/** What `docker save` wrote. */
export const IMAGES_FILE = join(outputDir, 'images.tar')

/** The address of this machine on the bridge of the pods: they find PostgreSQL and Redis there. */
export const NODE_ADDRESS = '10.232.0.1'
const POD_NETWORK = '10.232.0.0/16'
const SERVICE_NETWORK = '10.96.0.0/16'
const BRIDGE = 'spillway-e2e'
/** Built on the image of Node, because no hub has one: a container that keeps a pod's namespaces. */
export const PAUSE_IMAGE = 'spillway/pause:local'

interface Program {
  name: string
  command: string
  args: string[]
  env?: NodeJS.ProcessEnv
  /** Resolves to true once it answers. */
  isReady(): Promise<boolean>
}

export type Start = (program: Program) => Promise<void>

export type Cluster = Awaited<ReturnType<typeof startCluster>>

/** The folder of kube-apiserver and the others. */
const programs = await programSetDir('kubernetes')

/** What an empty network namespace lacks. Services have no interface: packets to them need some route. */
export async function openNetwork(): Promise<void> {
  const commands = [
    'link set lo up',
    `link add ${BRIDGE} type bridge`,
    `address add ${NODE_ADDRESS}/16 dev ${BRIDGE}`,
    `link set ${BRIDGE} up`,
    `route add ${SERVICE_NETWORK} dev ${BRIDGE}`,
  ]
  for (const command of commands) await run('ip', command.split(' '))
  // PostgreSQL and Redis listen on the loopback interface: pods and KEDA reach them by the address of the bridge.
  writeFileSync(`/proc/sys/net/ipv4/conf/${BRIDGE}/route_localnet`, '1')
  for (const rule of [
    `PREROUTING -i ${BRIDGE} -d ${NODE_ADDRESS} -p tcp -j DNAT --to-destination 127.0.0.1`,
    `OUTPUT -d ${NODE_ADDRESS} -p tcp -j DNAT --to-destination 127.0.0.1`,
    `INPUT -i ${BRIDGE} -d 127.0.0.1 -p tcp -j SNAT --to-source 127.0.0.1`,
  ])
    await run('iptables', ['-t', 'nat', '-A', ...rule.split(' ')])
}

/** @param onDeath called when a program ends before everything does */
export async function startCluster(keeper: Keeper, onDeath: (error: Error) => void) {
  const logDir = join(outputDir, 'logs')
  mkdirSync(join(logDir, 'pods'), { recursive: true })
  const start: Start = async ({ name, command, args, env, isReady }) => {
    const logFile = join(logDir, `${name}.log`)
    const started = { command, args, env: { PATH: process.env.PATH, HOME: outputDir, ...env } }
    const service = await startService({ keeper, name, logFile, url: '', process: started, ping: isReady })
    void service.exited.then(() => {
      if (!keeper.closing) onDeath(new Error(`${name} ended: ${logTailOf(logFile)} (its log: ${logFile})`))
    })
  }

  const { authority, kubeconfig } = await startControlPlane(start)
  const kubectl = kubectlFor(kubeconfig, join(await programSetDir('checks'), 'helm'))
  const apiPort = await freePort()
  const api = `http://127.0.0.1:${apiPort}`
  await start({
    name: 'kubectl-proxy',
    command: join(programs, 'kubectl'),
    args: ['proxy', `--port=${apiPort}`, `--kubeconfig=${kubeconfig}`],
    isReady: async () => (await fetch(`${api}/readyz`)).ok,
  })
  const startManager = async (name: string, isReady: Program['isReady'], ...args: string[]) => {
    const flags = ['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig']
    const common = [`--secure-port=${await freePort()}`, `--cert-dir=${outputDir}`, '--leader-elect=false']
    const all = [...flags.map((flag) => `--${flag}=${kubeconfig}`), ...common, ...args]
    await start({ name, command: join(programs, name), args: all, isReady })
  }
  await startManager(
    'kube-controller-manager',
    // It works once the first namespace has its service account.
    async () => (await fetch(`${api}/api/v1/namespaces/default/serviceaccounts/default`)).ok,
    `--service-account-private-key-file=${join(outputDir, 'service-accounts.key')}`,
  )
  await startManager('kube-scheduler', async () => true)
  const containerd = await startContainerd(start)
  await run('ctr', ['--address', containerd, '--namespace', 'k8s.io', 'images', 'import', IMAGES_FILE])
  await startNode(start, kubeconfig, containerd)
  const read = async <T>(path: string): Promise<T> => {
    const response = await fetch(api + path)
    if (!response.ok) throw new Error(`${path} was answered with ${response.status}`)
    return JSON.parse(await response.text())
  }
  return {
    start,
    authority,
    kubeconfig,
    kubectl,
    /** Reads an object, or a list of them, by its path. */
    read,
  }
}

/** Returns the path of a new file. What is no text becomes JSON, which is YAML. */
function write(name: string, content: unknown): string {
  const file = join(outputDir, name)
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 })
  return file
}

/** etcd and the API server. */
async function startControlPlane(start: Start) {
  const authority = await createAuthority(outputDir, 'cluster-authority')
  const frontAuthority = await createAuthority(outputDir, 'front-authority')
  const [server, admin, front] = await Promise.all([
    issue(outputDir, authority, { name: 'kube-apiserver', hosts: [...LOOPBACK, 'DNS:kubernetes.default.svc'] }),
    issue(outputDir, authority, { name: 'admin', group: 'system:masters' }),
    issue(outputDir, frontAuthority, { name: 'front-proxy' }),
  ])
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const accountKey = write('service-accounts.key', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())

  const [etcdPort, peerPort, apiPort] = [await freePort(), await freePort(), await freePort()]
  const etcdUrl = `http://127.0.0.1:${etcdPort}`
  await start({
    name: 'etcd',
    command: join(programs, 'server'),
    args: [
      `--data-dir=${join(outputDir, 'etcd')}`,
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
      // The data of a test may be lost in a crash.
      '--unsafe-no-fsync',
    ],
    isReady: async () => (await fetch(`${etcdUrl}/health`)).ok,
  })

  const url = `https://127.0.0.1:${apiPort}`
  const kubeconfig = write('kubeconfig.json', kubeconfigOf(url, authority, admin))
  await start({
    name: 'kube-apiserver',
    command: join(programs, 'kube-apiserver'),
    args: [
      `--etcd-servers=${etcdUrl}`,
      '--bind-address=127.0.0.1',
      `--advertise-address=${NODE_ADDRESS}`,
      `--secure-port=${apiPort}`,
      `--cert-dir=${outputDir}`,
      `--tls-cert-file=${server.certFile}`,
      `--tls-private-key-file=${server.keyFile}`,
      `--client-ca-file=${authority.certFile}`,
      '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${accountKey}`,
      `--service-account-signing-key-file=${accountKey}`,
      `--service-cluster-ip-range=${SERVICE_NETWORK}`,
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
    isReady: async () => {
      const kubectl = join(programs, 'kubectl')
      await run(kubectl, ['get', 'namespace', 'kube-system', `--kubeconfig=${kubeconfig}`], { env: process.env })
      return true
    },
  })
  return { authority, kubeconfig }
}

/** Debian's, with a socket of its own. Resolves with its path. */
async function startContainerd(start: Start): Promise<string> {
  const socket = join(outputDir, 'containerd.sock')
  const config = `version = 2
root = "${join(outputDir, 'containerd')}"
state = "${join(outputDir, 'containerd-state')}"
[grpc]
  address = "${socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/${PAUSE_IMAGE}"
  # Root without CAP_SYS_RESOURCE, as in some virtual machines, may not lower the score: pods would
  # fail with "can't get final child's PID from pipe: EOF".
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "${join(outputDir, 'cni')}"
`
  await start({
    name: 'containerd',
    command: 'containerd',
    args: ['--config', write('containerd.toml', config)],
    isReady: async () => (await run('ctr', ['--address', socket, 'version'], { env: process.env })) !== '',
  })
  return socket
}

/** The kubelet, the bridge that pods are on, and kube-proxy, which makes the addresses of Services. */
async function startNode(start: Start, kubeconfig: string, containerd: string): Promise<void> {
  mkdirSync(join(outputDir, 'cni'), { recursive: true })
  const routes = [{ dst: '0.0.0.0/0' }]
  const ipam = { type: 'host-local', dataDir: join(outputDir, 'addresses'), subnet: POD_NETWORK, routes }
  const bridge = { type: 'bridge', bridge: BRIDGE, isGateway: true, hairpinMode: true, ipam }
  write('cni/pods.conflist', { cniVersion: '0.4.0', name: 'pods', plugins: [bridge] })

  const [kubeletPort, healthPort, proxyPort, metricsPort] = await Promise.all(
    Array.from({ length: 4 }, () => freePort()),
  )
  const kubelet = {
    kind: 'KubeletConfiguration',
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    containerRuntimeEndpoint: `unix://${containerd}`,
    cgroupDriver: 'cgroupfs',
    // Version 1 of control groups is all that some machines have.
    failCgroupV1: false,
    failSwapOn: false,
    enforceNodeAllocatable: ['none'],
    oomScoreAdj: 0,
    // A full disk of this machine is no reason to end the test.
    evictionHard: { 'nodefs.available': '0%', 'imagefs.available': '0%', 'memory.available': '0%' },
    imageGCHighThresholdPercent: 100,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
    port: kubeletPort,
    healthzPort: healthPort,
    podLogsDir: join(outputDir, 'logs/pods'),
    volumePluginDir: join(outputDir, 'volume-plugins'),
  }
  await start({
    name: 'kubelet',
    command: join(programs, 'kubelet'),
    args: [
      `--config=${write('kubelet.json', kubelet)}`,
      `--kubeconfig=${kubeconfig}`,
      `--root-dir=${join(outputDir, 'kubelet')}`,
      `--cert-dir=${join(outputDir, 'kubelet-certificates')}`,
      '--hostname-override=here',
      `--node-ip=${NODE_ADDRESS}`,
    ],
    isReady: async () => (await fetch(`http://127.0.0.1:${healthPort}/healthz`)).ok,
  })
  const proxy = {
    kind: 'KubeProxyConfiguration',
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    clientConnection: { kubeconfig },
    mode: 'iptables',
    // Answers of one pod to another would bypass it on the bridge.
    iptables: { masqueradeAll: true },
    clusterCIDR: POD_NETWORK,
    hostnameOverride: 'here',
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    healthzBindAddress: `127.0.0.1:${proxyPort}`,
    metricsBindAddress: `127.0.0.1:${metricsPort}`,
  }
  await start({
    name: 'kube-proxy',
    command: join(programs, 'kube-proxy'),
    args: [`--config=${write('kube-proxy.json', proxy)}`],
    isReady: async () => (await fetch(`http://127.0.0.1:${proxyPort}/healthz`)).ok,
  })
}

/** kubectl, and Helm, as an administrator of the cluster. */
function kubectlFor(kubeconfig: string, helm: string) {
  const env = { PATH: process.env.PATH, HOME: '/tmp', KUBECONFIG: kubeconfig }
  const apply = (filename: string, input = '', ...args: string[]): Promise<string> =>
    run(join(programs, 'kubectl'), ['apply', '--server-side', ...args, '--filename', filename], { env, input })
  return {
    apply: (object: unknown, ...args: string[]) => apply('-', JSON.stringify(object), ...args),
    applyFiles: (dir: string) => apply(dir),
    helm: (...args: string[]) => run(helm, args, { env }),
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
