// Spillway on the cluster, by its chart: the Secrets it names, the pods it asks for, and the addresses of what is the user's.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { chartDir } from '@spillway/helm/chart'
import type { KubernetesApi } from './api.ts'
import type { Kubectl } from './kubectl.ts'

export const NAMESPACE = 'login'
export const RELEASE = 'spillway'
export const KEDA_USER = 'keda'
const valuesFile = fileURLToPath(new URL('../values.yaml', import.meta.url))

export interface Backends {
  databaseUrl: string
  /** host:port and the password. */
  redisAddress: string
  redisPassword: string
}

/** Creates the namespace, which takes restricted pods alone, and the Secrets that the chart's values name. */
export async function createSecrets(api: KubernetesApi, { databaseUrl, redisPassword }: Backends): Promise<void> {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  await api.call('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE, labels } })
  const { privateKey } = generateKeyPairSync('ed25519')
  const secrets: Record<string, Record<string, string>> = {
    'spillway-keys': {
      seal: `e2e:${randomBytes(32).toString('base64')}`,
      jwt: `e2e:${privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')}`,
      opsPassword: randomBytes(12).toString('base64url'),
    },
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
