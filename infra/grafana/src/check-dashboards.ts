// `pnpm --filter @spillway/infra dashboards`: every query of the dashboard and every rule, on a
// Prometheus that scrapes a real run. Each query must return data.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/infra/processes/until'
import { type ApiClient, type Credentials, readMetric, respondAsync } from '@spillway/infra/rig/api-client'
import { newSealKey } from '@spillway/infra/start/secrets'
import { type Prometheus, type Sample, startPrometheus } from './prometheus.ts'
import { type GatewayHandle, OPERATOR, openClient, openScene, runWithServices, type Scene } from './scene.ts'

/** Enough for rates and histograms over {@link RATE_INTERVAL} to have seen everything. */
const PATIENCE_MS = 120_000
const RATE_INTERVAL = '30s'
const RANGE = '1m'

const dashboard = new URL('../../helm/spillway/files/dashboards/spillway.json', import.meta.url)

/** A published vector of crypt_blowfish, whose password is `U*U`. */
const BCRYPT = { password: 'U*U', storedHash: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW' }

interface Panel {
  title: string
  targets?: { expr: string }[]
}

interface Asked {
  panel: string
  expr: string
}

/** Repeats the queries until each has returned data. Returns those that never did. */
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

await runWithServices(async (keeper, dir) => {
  const scene = await openScene()
  const workers = [await scene.worker(), await scene.worker({ env: { WORKER_CONCURRENCY: '2' } })]
  const gateways = [await scene.gateway({ LIMIT_PER_ACCOUNT: '12' }), await scene.gateway()] as const
  const prometheus = await startPrometheus(keeper, join(dir, 'prometheus'), {
    'spillway-gateway': gateways.map(({ opsUrl }) => opsUrl),
    'spillway-worker': workers.map(({ opsUrl }) => opsUrl),
  })
  const stopped = new AbortController()
  const activity = (async () => {
    for (; !stopped.signal.aborted; await sleep(200)) await round(scene, gateways)
  })()
  // Reported at the end.
  activity.catch(() => undefined)
  try {
    await killBusyWorker(scene)
    console.log('Every query of the dashboard, and its result:')
    const { panels }: { panels: Panel[] } = JSON.parse(readFileSync(dashboard, 'utf8'))
    const queries = panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({
        panel: title,
        expr: expr.replaceAll('$__rate_interval', RATE_INTERVAL).replaceAll('$__range', RANGE),
      })),
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
    stopped.abort()
    await activity
    await prometheus.close()
    await scene.close()
  }
})

async function round(scene: Scene, [one, other]: readonly [GatewayHandle, GatewayHandle]): Promise<void> {
  const account = { email: `${randomUUID()}@example.test`, password: 'a passphrase' }
  await one.api.register(account)
  const logins = Array.from({ length: 8 }, () => one.api.login(account))
  const wrong = one.api.login({ ...account, password: 'another passphrase' })
  await Promise.all([...logins, wrong, other.api.login({ ...account, email: 'nobody@example.test' })])
  await spendTicket(account, one.api, other.api)
  await reuseRefreshToken((await one.api.login(account)).body.refreshToken, other.api)
  await fetch(one.opsUrl, { headers: { authorization: `Basic ${btoa(`${OPERATOR.user}:a guess`)}` } })
  // A client that leaves early.
  await one.api.login(account, { signal: AbortSignal.timeout(2) })
  await addOddJobs(scene)
}

async function spendTicket(account: Credentials, one: ApiClient, other: ApiClient): Promise<void> {
  const { ticket } = (await one.login(account, respondAsync)).body
  await other.redeem(ticket)
  await other.redeem(ticket)
  await other.redeem(`${randomUUID()}.made-up`)
}

/** Reuse is detected only once the successor has been used: until then there is a grace period. */
async function reuseRefreshToken(refreshToken: unknown, api: ApiClient): Promise<void> {
  const { body } = await api.refresh(refreshToken)
  await api.refresh(body.refreshToken)
  await api.refresh(refreshToken)
}

/** Jobs of an older algorithm, past their deadline, and sealed with a foreign key. */
async function addOddJobs(scene: Scene): Promise<void> {
  for (const options of [{}, { jobLifeMs: 1 }, { sealKeys: newSealKey() }]) {
    const client = await openClient(scene, options)
    await client.submit('verify', BCRYPT).finally(() => client.close())
  }
}

/** Kills a worker while it has a job, which another one must take over. */
async function killBusyWorker(scene: Scene): Promise<void> {
  const victim = await scene.worker({ env: { SPILLWAY_TEST_HASHES: 'true' } })
  const client = await openClient(scene)
  await until(async () => {
    await client.submit('verify', { password: 'any', storedHash: '$spillway-wait$10000$' })
    return (await readMetric(victim.opsUrl, 'spillway_worker_slots_busy')) === 1
  }).finally(() => client.close())
  await victim.close()
}
