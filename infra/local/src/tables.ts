// `pnpm tables [--check]`: writes the tables of settings in the pages, from their schemas. With --check it writes nothing, and fails
// when a page differs. Either way it fails when a dashboard or a rule names a metric that does not exist.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GatewayConfig } from '@spillway/api/config'
import { fileVariable } from '@spillway/common/secrets'
import { WorkerConfig } from '@spillway/worker/config'
import { repositoryDir } from './processes/repository.ts'

const read = (path: string): string => readFileSync(join(repositoryDir, path), 'utf8')

/** The settings that each page has a table of. */
const pages = { 'api/README.md': GatewayConfig, 'worker/README.md': WorkerConfig }
/** What asks for metrics, in the chart. */
const askers = ['dashboards/spillway.json', 'alerts/alerts.yaml', 'alerts/recording.yaml', 'alerts/minimum.yaml']
const declared = new Set(['api/src', 'worker/src', 'worker/common/src'].flatMap(declaredMetrics))

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

/** Names in PromQL without quotes; a rule that records a series names it with colons. */
function unknownMetrics(path: string): string[] {
  const asked = read(path).matchAll(/(?<![\w:])spillway_\w+(?![\w:])/g)
  const names = new Set(
    Array.from(asked, ([name]) => (declared.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''))),
  )
  return [...names].filter((name) => !declared.has(name)).map((name) => `${path} names ${name}, which nothing tells`)
}

/** Metrics have their names in quotes where they are declared. */
function declaredMetrics(folder: string): string[] {
  const files = readdirSync(join(repositoryDir, folder), { recursive: true, encoding: 'utf8' })
  const sources = files.filter((name) => name.endsWith('.ts')).map((name) => read(join(folder, name)))
  return sources.flatMap((source) => Array.from(source.matchAll(/'(spillway_\w+)'/g), ([, name = '']) => name))
}
