// Spillway on the cluster, by its chart: the Secrets that it names, and the addresses of PostgreSQL and Redis.
import { randomBytes } from 'node:crypto'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chartDir } from '@spillway/helm/chart'
import { run } from '@spillway/local/processes/run'
import { newSealKey, newSigningKey } from '@spillway/local/start/secrets'
import type { KubernetesApi } from './api.ts'

export const NAMESPACE = 'login'
export const RELEASE = 'spillway'
export const KEDA_USER = 'keda'
const valuesFile = fileURLToPath(new URL('../values.yaml', import.meta.url))

export interface Backends {
  databaseUrl: string
  /** host:port */
  redisAddress: string
  redisPassword: string
}

/** Creates the namespace, which admits restricted pods only, and the Secrets that the chart's values name. */
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

/** Installs the chart, or upgrades it, and resolves when its pods are ready. `set` are single values, as `path=value`. */
export async function installChart(
  kubectl: Kubectl,
  { redisAddress }: Backends,
  gatewayUrl: string,
  set: string[] = [],
): Promise<void> {
  const values = [`redis.addresses={${redisAddress}}`, `tests.gatewayUrl=${gatewayUrl}`, ...set]
  await kubectl.helm(
    ...['upgrade', RELEASE, chartDir, '--install', '--wait', '--timeout', '3m', '--namespace', NAMESPACE],
    ...['--values', valuesFile, ...values.flatMap((value) => ['--set', value])],
  )
}

// kubectl, and Helm, as an administrator of the cluster.

export type Kubectl = ReturnType<typeof kubectlFor>

export function kubectlFor(kubeconfig: string, kubectl: string, helm: string) {
  const env = { PATH: process.env.PATH, HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig }
  const apply = (filename: string, input = '', ...args: string[]): Promise<string> =>
    run(kubectl, ['apply', '--server-side', ...args, '--filename', filename], { env, input })
  return {
    /** Applies one object, by the server. */
    apply: (object: unknown) => apply('-', JSON.stringify(object)),
    /** Applies every file of a folder, by the server. */
    applyFiles: (dir: string) => apply(dir),
    /** Has the server check the objects of a YAML text without applying them. Returns a line about each. */
    async dryRun(yaml: string, namespace: string) {
      const output = await apply('-', yaml, '--dry-run=server', '--validate=strict', '--namespace', namespace)
      return output.trim().split('\n')
    },
    /** Runs Helm and returns its output. */
    helm: (...args: string[]) => run(helm, args, { env }),
  }
}
