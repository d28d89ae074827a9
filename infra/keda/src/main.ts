// The second half of `pnpm --filter @spillway/infra e2e`: the chart, as users install it, on a real cluster
// with the real KEDA. A spike of logins scales the workers up, its end scales them down, and no login
// fails.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type ApiAnswer, ask, redeemUntilAnswered } from '@spillway/infra/harness/api-client'
import { runWithKeeper } from '@spillway/infra/processes/command'
import { UserError } from '@spillway/infra/processes/command-line'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { until } from '@spillway/infra/processes/until'
import { startPostgres } from '@spillway/infra/services/postgres'
import { startRedis } from '@spillway/infra/services/redis'
import { newSealKey, newSigningKey } from '@spillway/infra/start/secrets'
import { Redis } from 'ioredis'
import { type Cluster, NODE_ADDRESS, openNetwork, outputDir, startCluster } from './cluster.ts'
import { startKeda } from './keda.ts'

const chartDir = fileURLToPath(new URL('../../helm/spillway', import.meta.url))
const valuesFile = fileURLToPath(new URL('../values.yaml', import.meta.url))
const NAMESPACE = 'login'
const PASSWORD = 'only-for-this-run'
const WORKERS = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/spillway-worker`
const AUTOSCALER = `/apis/autoscaling/v2/namespaces/${NAMESPACE}/horizontalpodautoscalers/keda-hpa-spillway-worker`
const SERVICE = `/api/v1/namespaces/${NAMESPACE}/services/spillway-gateway`

/** Of values.yaml. */
const MAX_REPLICAS = 4
/** Six workers' worth: clients that log in again and again, each with one login at a time. */
const CLIENTS = 24
const ACCOUNTS = 6
/** Pods start slowly on a small machine that also runs the cluster. */
const SCALE_MS = 300_000
/** How long nothing must happen. */
const QUIET_MS = 40_000

const startedAt = performance.now()
const say = (line: string): void =>
  console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(7)} s  ${line}`)

await runWithKeeper(async (keeper) => {
  if (process.pid !== 1) throw new UserError('This runs in namespaces of its own: pnpm --filter @spillway/infra e2e')
  await openNetwork()
  await new Promise<void>((resolve, reject) => scenario(keeper, reject).then(resolve, reject))
})
if (process.exitCode === 1) console.error(`The logs: ${join(outputDir, 'logs')}`)
process.exit()

async function scenario(keeper: Keeper, onDeath: (error: Error) => void): Promise<void> {
  const { cluster, redis } = await install(keeper, onDeath)
  const { spec } = await cluster.read<{ spec: { clusterIP: string } }>(SERVICE)
  const url = `http://${spec.clusterIP}`
  const accounts = Array.from({ length: ACCOUNTS }, (_, n) => ({ email: `e2e-${n}@example.test`, password: PASSWORD }))
  for (const account of accounts) assert.equal((await finished(url, '/v1/users', account)).status, 201)
  const { helm } = cluster.kubectl
  const found = ['--namespace', NAMESPACE, '--reuse-values', '--set', `tests.gatewayUrl=${url}`]
  await helm('upgrade', 'spillway', chartDir, ...found)
  await helm('test', 'spillway', '--namespace', NAMESPACE, '--timeout', '3m')
  say('helm test: a login succeeds, the scaler watches a queue, a job shows in it')

  const timeline = startTimeline(cluster, redis)
  const at = (replicas: number, timeoutMs = SCALE_MS) =>
    until(() => timeline.is(replicas), { timeoutMs, what: `${replicas} workers` })
  await at(1)
  await until(
    async () => {
      type Autoscaler = { status?: { conditions?: { type: string; status: string }[] } }
      const { status } = await cluster.read<Autoscaler>(AUTOSCALER)
      return status?.conditions?.some(({ type, status: is }) => type === 'ScalingActive' && is === 'True')
    },
    { what: 'an autoscaler that reads the queue' },
  )
  timeline.forget()
  await sleep(QUIET_MS)
  assert.deepEqual(timeline.seen(), [1])
  say(`idle, the one worker stayed alone for ${QUIET_MS / 1_000} s`)

  const traffic = startTraffic(url, accounts)
  traffic.setClients(CLIENTS)
  say(`the spike: ${CLIENTS} clients log in, one login after another`)
  await at(MAX_REPLICAS)
  const during = traffic.statuses().length
  traffic.setClients(1)
  say(`the end of the spike, after ${during} logins: one client goes on`)
  await at(1)
  traffic.setClients(0)
  await until(() => traffic.inFlight() === 0, { what: 'the last login' })
  assert.deepEqual([...new Set(traffic.statuses())], [200])
  say(`every one of ${traffic.statuses().length} logins succeeded`)
  timeline.close()
  redis.disconnect()
}

/** Everything up to `helm install`, which migrates, and waits until all pods are ready. */
async function install(keeper: Keeper, onDeath: (error: Error) => void) {
  const cluster = await startCluster(keeper, onDeath)
  say('the cluster runs')
  await startKeda(cluster)
  say('KEDA runs')

  const placeOf = (name: string) => {
    const logFile = join(outputDir, 'logs', `${name}.log`)
    return { password: PASSWORD, keeper, say, durable: false, dir: join(outputDir, name), logFile }
  }
  const [postgres, redis] = await Promise.all([startPostgres(placeOf('postgres')), startRedis(placeOf('redis'))])
  const databaseUrl = new URL(postgres.url)
  databaseUrl.hostname = NODE_ADDRESS
  const redisAddress = `${NODE_ADDRESS}:${new URL(redis.url).port}`

  const { kubectl } = cluster
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  await kubectl.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE, labels } })
  await lowerRequests(cluster)
  const secrets: Record<string, Record<string, string>> = {
    'spillway-keys': { seal: newSealKey(), jwt: newSigningKey(), opsPassword: PASSWORD },
    'spillway-database': { url: databaseUrl.href },
    'spillway-redis': { password: PASSWORD },
  }
  for (const [name, stringData] of Object.entries(secrets))
    await kubectl.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: NAMESPACE }, stringData })
  await kubectl.helm(
    ...['install', 'spillway', chartDir, '--wait', '--timeout', '10m', '--namespace', NAMESPACE],
    ...['--values', valuesFile, '--set', `redis.addresses={${redisAddress}}`],
  )
  say('helm install: the hook migrated, and all pods are ready')
  return { cluster, redis: new Redis(redis.url) }
}

/** Pods ask for whole cores, of which a small machine has fewer: here the scheduler is asked for a tenth. */
async function lowerRequests({ kubectl }: Cluster): Promise<void> {
  const apiVersion = 'admissionregistration.k8s.io/v1'
  const expression = `[JSONPatch{op: "replace", path: "/spec/containers/0/resources/requests/cpu", value: "100m"}]`
  const pods = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }
  await kubectl.apply({
    apiVersion,
    kind: 'MutatingAdmissionPolicy',
    metadata: { name: 'small-machine' },
    spec: {
      matchConstraints: { resourceRules: [pods] },
      failurePolicy: 'Fail',
      reinvocationPolicy: 'Never',
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
    },
  })
  const metadata = { name: 'small-machine' }
  await kubectl.apply({
    apiVersion,
    kind: 'MutatingAdmissionPolicyBinding',
    metadata,
    spec: { policyName: metadata.name },
  })
}

/** The deployment of the workers, as the autoscaler wants it and as the kubelet has it, and the queue. */
function startTimeline({ read }: Cluster, redis: Redis) {
  interface Deployment {
    spec: { replicas: number }
    status: { replicas?: number; readyReplicas?: number }
  }
  let closed = false
  let last = ''
  let counts: number[] = []
  let seen = new Set<number>()
  const sample = async () => {
    const { spec, status } = await read<Deployment>(WORKERS)
    const key = (name: string) => `{spillway}:passwords:${name}`
    const [open, ticketed, active] = await Promise.all([
      redis.llen(key('wait')),
      redis.zcard(key('prioritized')),
      redis.llen(key('active')),
    ])
    counts = [spec.replicas, status.replicas ?? 0, status.readyReplicas ?? 0]
    seen.add(spec.replicas)
    const [wanted, there, ready] = counts
    const state = `${wanted} wanted, ${there} there, ${ready} ready`
    if (state !== last) say(`workers: ${state}; jobs: ${open + ticketed + active}`)
    last = state
  }
  void (async () => {
    // A reading that fails is left out: the next one is near.
    for (; !closed; await sleep(500)) await sample().catch(() => undefined)
  })()
  return {
    /** Whether this many workers are wanted, there and ready. */
    is: (replicas: number) => counts.length > 0 && counts.every((count) => count === replicas),
    /** The numbers that the autoscaler has wanted since `forget`. */
    seen: () => [...seen],
    forget() {
      seen = new Set()
    },
    close() {
      closed = true
    },
  }
}

type Account = { email: string; password: string }

/** Clients that log in, and log in again. */
function startTraffic(url: string, accounts: Account[]) {
  const statuses: (number | string)[] = []
  let wanted = 0
  let running = 0
  const client = async (n: number): Promise<void> => {
    running++
    while (n < wanted) {
      const account = accounts[n % accounts.length]
      const { status, body } = await finished(url, '/v1/login', account)
      statuses.push(status === 200 ? status : `${status} ${body.code}`)
    }
    running--
  }
  return {
    statuses: () => statuses,
    inFlight: () => running,
    setClients(count: number) {
      const before = wanted
      wanted = count
      for (let n = before; n < count; n++) void client(n)
    },
  }
}

/** The last answer to a request, with its ticket redeemed, and sent again when it was refused as busy. */
async function finished(url: string, path: string, body: unknown): Promise<ApiAnswer> {
  let first = await ask(url, path, { body })
  for (; first.body.code === 'busy'; first = await ask(url, path, { body })) await sleep(first.retryAfterMs)
  return await redeemUntilAnswered(first, { redeem: (ticket) => ask(url, '/v1/tickets/redeem', { body: { ticket } }) })
}
