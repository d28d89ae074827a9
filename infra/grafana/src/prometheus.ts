// A real Prometheus that scrapes a scene, with the rules that the chart carries.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UserError } from '@spillway/infra/processes/command-line'
import { Keeper } from '@spillway/infra/processes/keeper'
import { freePort } from '@spillway/infra/processes/port'
import { onPath } from '@spillway/infra/processes/run'
import { type AptProgram, aptProgram, isUnpacked } from '@spillway/infra/services/apt-packages'
import { startService } from '@spillway/infra/services/service'

const rulesDir = fileURLToPath(new URL('../../helm/spillway/files/alerts/', import.meta.url))

export interface Sample {
  labels: Record<string, string>
  value: number
}

interface RuleState {
  name: string
  health: string
  lastError: string
}

/** On the PATH, else in Debian's package, unpacked into the ignored folder. */
async function prometheusProgram(keeper: Keeper, name: 'prometheus' | 'promtool'): Promise<AptProgram> {
  const installed = onPath([name])
  if (installed !== undefined) return { command: installed, env: {} }
  const fetched = await aptProgram({
    keeper,
    name: 'prometheus',
    packages: ['prometheus'],
    commands: [name],
    announce: () => console.log('No Prometheus on the PATH: fetching one with apt-get into the ignored folder.'),
  })
  if (fetched !== undefined) return fetched
  throw new UserError(`There is no ${name} here, and no apt to fetch it: put it on the PATH.`)
}

/** Why tests that need either program are skipped, or false. */
export const skipWithoutPrometheus =
  onPath(['prometheus']) !== undefined || isUnpacked('prometheus')
    ? false
    : 'there is no Prometheus: pnpm --filter @spillway/infra dashboards fetches one'

/** Runs promtool in a folder, once for each list of arguments. Rejects when it finds a fault. */
export async function promtool(cwd: string, ...runs: string[][]): Promise<void> {
  const keeper = new Keeper()
  try {
    const { command, env } = await prometheusProgram(keeper, 'promtool')
    for (const args of runs) await keeper.run({ command, args, cwd, env: { ...process.env, ...env } })
  } finally {
    await keeper.close()
  }
}

export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>

/** Starts a server with data in this folder; it scrapes the targets of each job every second. */
export async function startPrometheus(keeper: Keeper, dir: string, targets: Record<string, string[]>) {
  const { command, env } = await prometheusProgram(keeper, 'prometheus')
  mkdirSync(dir, { recursive: true })
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [join(rulesDir, '*.yaml')],
    scrape_configs: Object.entries(targets).map(([job, urls]) => ({
      job_name: job,
      static_configs: [{ targets: urls.map((url) => new URL(url).host) }],
    })),
  }
  // JSON is YAML.
  writeFileSync(join(dir, 'prometheus.yml'), JSON.stringify(config))
  const port = await freePort()
  const args = [
    `--config.file=${join(dir, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(dir, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=error',
  ]
  const { url, close } = await startService({
    keeper,
    name: 'Prometheus',
    process: { command, args, env: { ...process.env, ...env } },
    logFile: join(dir, 'prometheus.log'),
    url: `http://127.0.0.1:${port}`,
    ping: async (url) => (await fetch(`${url}/-/ready`)).ok,
  })
  return {
    /** The result of a query now. Rejects with Prometheus's own error when it is no PromQL. */
    async query(expr: string): Promise<Sample[]> {
      const answer = await ask(`${url}/api/v1/query?query=${encodeURIComponent(expr)}`)
      return answer.result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }))
    },
    async rules(): Promise<RuleState[]> {
      const { groups } = await ask(`${url}/api/v1/rules`)
      return groups.flatMap(({ rules }) => rules)
    },
    close,
  }
}

interface Data {
  result: { metric: Record<string, string>; value: [number, string] }[]
  groups: { rules: RuleState[] }[]
}

async function ask(url: string): Promise<Data> {
  const { status, data, error } = JSON.parse(await (await fetch(url)).text())
  if (status !== 'success') throw new Error(String(error))
  return data
}
