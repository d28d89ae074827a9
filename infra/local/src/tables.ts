// `pnpm tables [--check]`: writes the tables of settings in the pages, from their schemas. With --check it writes nothing, and fails
// when a page differs. Either way it fails when a dashboard or a rule names a metric that does not exist.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GatewayConfig } from '@spillway/api/config'
import { exposeGatewayState } from '@spillway/api/gauges'
import { GatewayMetrics } from '@spillway/api/metrics'
import type { Metrics } from '@spillway/common/metrics'
import { fileVariable } from '@spillway/common/secrets'
import { WorkerConfig } from '@spillway/worker/config'
import { LEAST_ARGON2ID } from '@spillway/worker/hashing/policy'
import { WorkerMetrics } from '@spillway/worker/metrics'
import { repositoryDir } from './processes/repository.ts'

const read = (path: string): string => readFileSync(join(repositoryDir, path), 'utf8')

/** The settings that each page has a table of. */
const pages = { 'api/README.md': GatewayConfig, 'worker/README.md': WorkerConfig }
/** What asks for metrics, in the chart. */
const askers = ['dashboards/spillway.json', 'alerts/alerts.yaml', 'alerts/recording.yaml', 'alerts/minimum.yaml']

const problems: string[] = []
const isCheck = process.argv.includes('--check')
for (const [path, schema] of Object.entries(pages)) {
  const page = read(path)
  const current = withTable(page, settingsTable(schema))
  if (current === page) continue
  if (isCheck) problems.push(`${path} differs from the code: run "npx --yes pnpm tables"`)
  else writeFileSync(join(repositoryDir, path), current)
}
for (const name of askers) problems.push(...unknownMetrics(`infra/helm/spillway/files/${name}`))
for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0

/** The page with the table between its two comments. */
function withTable(page: string, table: string): string {
  const place = /(?<=<!-- settings -->\n).*(?=\n<!-- \/settings -->)/s
  if (!place.test(page)) throw new Error('the page has no place for <!-- settings --> … <!-- /settings -->')
  return page.replace(place, () => table)
}

interface Setting {
  readonly type: string
  readonly default?: string | number | boolean
  readonly minimum?: number
  readonly maximum?: number
  readonly enum?: readonly string[]
  readonly description?: string
  readonly writeOnly?: boolean
}

interface Settings {
  readonly properties: Readonly<Record<string, Setting>>
  readonly required: readonly string[]
}

function settingsTable({ properties, required }: Settings): string {
  const rows = Object.entries(properties).map(([name, setting]) => {
    const { default: value = '', description } = setting
    if (!description) throw new Error(`${name} has no description`)
    const byDefault = required.includes(name) ? '**required**' : value === '' ? '' : `\`${value}\``
    return [`\`${name}\``, byDefault, boundsOf(name, setting), description]
  })
  const heads = ['name', 'default', 'bounds', 'meaning']
  return [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function boundsOf(name: string, { type, minimum, maximum, enum: words, writeOnly }: Setting): string {
  if (writeOnly) return `or \`${fileVariable(name)}\``
  if (words !== undefined) return words.map((word) => `\`${word}\``).join(', ')
  if (type === 'boolean') return '`true`, `false`'
  if (minimum === undefined || maximum === undefined) return ''
  return maximum === Number.MAX_SAFE_INTEGER ? `${minimum} or more` : `${minimum} to ${maximum}`
}

function gatewayMetrics(): string[] {
  const metrics = new GatewayMetrics([])
  exposeGatewayState(metrics, {
    passwords: { load: notRead, predictedWaitMs: notRead, line: notRead, takesWrites: notRead, eviction: notRead },
    reporter: { read: notRead },
    guard: { inHand: notRead, delayMs: notRead },
    config: { loginWaitMs: 0, ticketTtlMs: 0 },
    post: undefined,
    poolUse: notRead,
    audit: { oldestMs: notRead },
  })
  return declared(metrics)
}

function workerMetrics(): string[] {
  const metrics = new WorkerMetrics()
  const policy = { hashes: LEAST_ARGON2ID, rehash: 'never', longPasswords: LEAST_ARGON2ID } as const
  metrics.exposeState({
    slots: 1,
    policy,
    engines: {},
    busySlots: notRead,
    stuckMs: notRead,
    takesWrites: notRead,
    eviction: notRead,
  })
  return declared(metrics)
}

/** Gauges are declared here, and not read. */
function notRead(): never {
  throw new Error('a gauge was read')
}

function declared(metrics: Metrics): string[] {
  metrics.exposeKeys([])
  return metrics.registry.getMetricsAsArray().map(({ name }) => name)
}

/** Names in PromQL without quotes; a rule that records a series names it with colons. */
function unknownMetrics(path: string): string[] {
  const known = new Set([...gatewayMetrics(), ...workerMetrics()])
  const asked = read(path).matchAll(/(?<![\w:])spillway_\w+(?![\w:])/g)
  const names = new Set(
    Array.from(asked, ([name]) => (known.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''))),
  )
  return [...names].filter((name) => !known.has(name)).map((name) => `${path} names ${name}, which nothing tells`)
}
