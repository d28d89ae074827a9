// The rules that the chart carries: valid, tested, with a runbook each, and about metrics that
// exist.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'vitest'
import { parse } from 'yaml'
import { promtool, skipWithoutPrometheus as skip } from '../../src/prometheus.ts'
import { readMetricsTable } from '../metrics-table.ts'

const alertsDir = fileURLToPath(new URL('../../', import.meta.url))
const read = (name: string) => readFileSync(`${alertsDir}${name}`, 'utf8')

interface Rule {
  alert?: string
  record?: string
  expr: string
  labels?: { severity?: string }
  annotations?: { summary?: string; runbook?: string }
}

const rulesDir = '../helm/spillway/files/alerts/'
const files = ['recording.yaml', 'minimum.yaml', 'alerts.yaml'].map((name) => rulesDir + name)
const rules: Rule[] = files.flatMap((file) => parse(read(file)).groups.flatMap(({ rules }: { rules: Rule[] }) => rules))
const alerts = rules.filter(({ alert }) => alert !== undefined)

test.skipIf(skip)('promtool finds every alert firing when it should and only then', async () => {
  await promtool(
    alertsDir,
    ['check', 'rules', ...files],
    ['test', 'rules', 'alert-tests/alerts.yaml', 'alert-tests/scaled-to-zero.yaml'],
  )
})

test('every alert is tested both ways, has a severity, a summary and a runbook', () => {
  const cases: { alertname: string; exp_alerts: unknown[] }[] = parse(read('alert-tests/alerts.yaml')).tests.flatMap(
    ({ alert_rule_test }: { alert_rule_test: unknown[] }) => alert_rule_test,
  )
  const sections = read('ALERTS.md').match(/^### .+$/gm) ?? []
  assert.deepEqual(
    sections,
    alerts.map(({ alert }) => `### ${alert}`),
  )
  for (const { alert = '', labels, annotations } of alerts) {
    const tried = cases.filter(({ alertname }) => alertname === alert)
    assert.ok(
      tried.some(({ exp_alerts }) => exp_alerts.length > 0),
      `no test sees ${alert} fire`,
    )
    assert.ok(
      tried.some(({ exp_alerts }) => exp_alerts.length === 0),
      `no test sees ${alert} keep quiet`,
    )
    assert.match(labels?.severity ?? '', /^(page|ticket)$/)
    assert.ok(annotations?.summary)
    assert.equal(annotations?.runbook, `infra/grafana/ALERTS.md#${alert.toLowerCase()}`)
  }
})

test('rules name only metrics of the table, and series that rules record', () => {
  const known = new Set(
    readMetricsTable().flatMap(({ name }) => [name, `${name}_bucket`, `${name}_sum`, `${name}_count`]),
  )
  const recorded = new Set(rules.flatMap(({ record }) => record ?? []))
  for (const { expr, alert, record } of rules) {
    for (const [name] of expr.matchAll(/\bspillway[\w:]*\b(?=[^"]*(?:"[^"]*"[^"]*)*$)/g)) {
      assert.ok(known.has(name) || recorded.has(name), `${alert ?? record} asks for ${name}, which nothing tells`)
    }
  }
})
