// Several installations in one Prometheus: the rules of each are about its own series, and its
// alerts say whose they are.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { test } from 'vitest'
import { promtool, skipWithoutPromtool } from '../../../grafana/test/promtool.ts'
import { rendered, skip, specOf } from '../chart.ts'

interface Spec {
  groups: { rules: { alert?: string; record?: string; expr: string }[] }[]
}

/** Two share a namespace, two a name. What their services are called is left of the dash. */
const blue = { release: 'spillway', namespace: 'blue', service: 'spillway' }
const green = { release: 'spillway', namespace: 'green', service: 'spillway' }
const west = { release: 'west', namespace: 'blue', service: 'west-spillway' }
const installations = [blue, green, west]
type Installation = typeof blue

async function rulesOf({ release, namespace }: Installation): Promise<Spec> {
  const set = ['monitoring.prometheusRule.enabled=true']
  return specOf((await rendered('PrometheusRule', { release, namespace, set }))[0])
}

function series(metric: string, { namespace, service }: Installation, labels: string, values: string): object {
  return { series: `${metric}{namespace="${namespace}",service="${service}-gateway-ops"${labels}}`, values }
}

function fires(alertname: string, whose: Installation[], summary: string): object {
  const runbook = `infra/grafana/ALERTS.md#${alertname.toLowerCase()}`
  return {
    eval_time: '15m',
    alertname,
    exp_alerts: whose.map(({ namespace, release }) => ({
      exp_labels: { severity: 'page', namespace, release },
      exp_annotations: { summary, runbook },
    })),
  }
}

/** The autoscaler's numbers, as kube-state-metrics tells them. */
function autoscaler({ namespace, service }: Installation, desired: number): object[] {
  return ['status_desired', 'spec_max'].map((which) => ({
    series: `kube_horizontalpodautoscaler_${which}_replicas{namespace="${namespace}",horizontalpodautoscaler="keda-hpa-${service}-worker"}`,
    values: `${which === 'spec_max' ? 20 : desired}x20`,
  }))
}

const logins = 'spillway_http_requests_total'
const noWorker = 'No worker is alive: every login gets a ticket'
const tests = [
  {
    name: 'one has lost its workers',
    input_series: [blue, green, west].map((one) => series('spillway_workers', one, '', one === blue ? '0x20' : '3x20')),
    alert_rule_test: [fires('SpillwayNoWorker', [blue], noWorker), fires('SpillwayNoGateway', [], '')],
  },
  {
    name: 'one is not scraped any more',
    input_series: [blue, green].map((one) => series('spillway_workers', one, '', '3x20')),
    alert_rule_test: [fires('SpillwayNoGateway', [west], 'No gateway is being scraped')],
  },
  {
    name: 'a tenth of the logins of one fails, among many of another',
    input_series: [
      series(logins, green, ',route="/v1/login",status="200"', '0+540x20'),
      series(logins, green, ',route="/v1/login",status="503"', '0+60x20'),
      series(logins, west, ',route="/v1/login",status="200"', '0+90000x20'),
    ],
    alert_rule_test: [fires('SpillwayLoginErrorBudgetBurnsFast', [green], '10% of logins failed in the last hour')],
  },
  {
    name: 'one waits at its maximum, another below it, and one at its own does not wait',
    input_series: [
      series('spillway_predicted_wait_seconds', blue, '', '20x20'),
      series('spillway_predicted_wait_seconds', green, '', '40x20'),
      series('spillway_predicted_wait_seconds', west, '', '0x20'),
      ...installations.map((one) => series('spillway_setting_seconds', one, ',setting="login_wait"', '8x20')),
      ...autoscaler(blue, 20),
      ...autoscaler(green, 4),
      ...autoscaler(west, 20),
    ],
    alert_rule_test: [
      fires('SpillwayAtMaximumWithBacklog', [blue], 'Workers are at their maximum, and a login would still take 20s'),
    ],
  },
]

test.skipIf(skip)('every selector names the installation', async () => {
  for (const { rules } of (await rulesOf(blue)).groups) {
    for (const { alert, record, expr } of rules) {
      for (const [name, scope] of expr.matchAll(/\b(?:spillway[_:]|nodejs_|kube_)[\w:]+(\{namespace="blue"[,}])?/g))
        assert.ok(scope, `${alert ?? record} asks for any ${name}`)
    }
  }
})

test.skipIf(skip || skipWithoutPromtool)("no installation hides another's trouble", async (t) => {
  const dir = await scratchDir(t)
  const rule_files = installations.map(({ release, namespace }) => `${namespace}-${release}.yaml`)
  // JSON is YAML.
  for (const [index, one] of installations.entries())
    await writeFile(join(dir, rule_files[index] ?? ''), JSON.stringify(await rulesOf(one)))
  const cases = tests.map((one) => ({ interval: '1m', ...one }))
  await writeFile(join(dir, 'test.yaml'), JSON.stringify({ rule_files, evaluation_interval: '1m', tests: cases }))
  await promtool(dir, ['check', 'rules', ...rule_files], ['test', 'rules', 'test.yaml'])
})
