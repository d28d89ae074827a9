// The command `pnpm --filter @spillway/grafana check`: every query of the dashboard and every rule, on a real Prometheus that scrapes a
// real run; each query must return data. Prints each result.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { killBusyWorker, startActivity } from './activity.ts'
import { rows } from './dashboard.ts'
import { type Prometheus, type Sample, startPrometheus } from './prometheus.ts'
import { openScene, runWithServices } from './scene.ts'

/** Enough for rates and histograms over {@link RATE_INTERVAL} to have seen everything. */
const PATIENCE_MS = 120_000
const RATE_INTERVAL = '30s'
const RANGE = '1m'

interface Asked {
  panel: string
  expr: string
}

/** Repeats the queries until each has returned data. Returns those that have not when the time is over. */
async function askAll(prometheus: Prometheus, queries: Asked[]): Promise<Asked[]> {
  const deadline = Date.now() + PATIENCE_MS
  let silent = queries
  while (silent.length > 0 && Date.now() < deadline) {
    await sleep(1_000)
    const answered = await Promise.all(
      silent.map(async ({ panel, expr }) => report(panel, await prometheus.query(expr))),
    )
    silent = silent.filter((_, index) => !answered[index])
  }
  return silent
}

/** Prints an answer; false when it holds no number: NaN (0/0) is no data. */
function report(panel: string, samples: Sample[]): boolean {
  const told = samples.filter(({ value }) => !Number.isNaN(value))
  const shown = told
    .slice(0, 4)
    .map(({ labels, value }) => `${Object.values(labels).join(' ') || 'value'} ${Number(value.toPrecision(3))}`)
  const count = String(told.length).padStart(3)
  if (told.length > 0)
    console.log(`  ${panel.padEnd(44)} ${count} series: ${shown.join(', ')}${told.length > 4 ? ' …' : ''}`)
  return told.length > 0
}

await runWithServices(async ({ keeper, dir }) => {
  const scene = await openScene()
  const workers = [await scene.worker(), await scene.worker({ env: { WORKER_CONCURRENCY: '2' } })]
  const gateways = [await scene.gateway({ LIMIT_PER_ACCOUNT: '12' }), await scene.gateway()] as const
  const prometheus = await startPrometheus(keeper, join(dir, 'prometheus'), {
    'spillway-gateway': gateways.map(({ opsUrl }) => opsUrl),
    'spillway-worker': workers.map(({ opsUrl }) => opsUrl),
  })
  const activity = startActivity(scene, [...gateways])
  try {
    await killBusyWorker(scene)
    console.log('Every query of the dashboard, and its result:')
    const queries = rows.flatMap(({ panels }) =>
      panels.flatMap(({ title, queries }) =>
        queries.map(({ expr }) => ({
          panel: title,
          expr: expr.replaceAll('$__rate_interval', RATE_INTERVAL).replaceAll('$__range', RANGE),
        })),
      ),
    )
    const silent = await askAll(prometheus, queries)
    for (const { panel, expr } of silent) console.error(`No data: ${panel}: ${expr}`)

    const rules = await prometheus.rules()
    const broken = rules.filter(({ health }) => health !== 'ok')
    for (const { name, lastError } of broken) console.error(`Rule ${name}: ${lastError}`)
    const firing = await prometheus.query('sum by (alertname) (ALERTS{alertstate="firing"})')
    console.log(
      `\n${queries.length - silent.length} of ${queries.length} queries returned data; ${rules.length - broken.length} of ${rules.length} rules are healthy.`,
    )
    console.log(
      `Firing, after what was done to it: ${firing.map(({ labels }) => labels.alertname).join(', ') || 'nothing'}.`,
    )
    if (silent.length + broken.length > 0) process.exitCode = 1
  } finally {
    await activity.close()
    await prometheus.close()
    await scene.close()
  }
})
