// The chart's rules and dashboards for Prometheus and Grafana: all of them are installed.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'vitest'
import { parse } from 'yaml'
import { chartDir, type Manifest, rendered, skip, specOf } from '../chart.ts'

interface Group {
  name: string
  rules: { alert?: string; record?: string; expr: string; annotations?: Record<string, string> }[]
}

function namesIn(groups: Group[]): (string | undefined)[] {
  return groups.flatMap(({ rules }) => rules.map(({ alert, record }) => alert ?? record))
}

function groupsOf(manifest: Manifest | undefined): Group[] {
  return specOf<{ groups: Group[] }>(manifest).groups
}

/** The files in a folder of the chart, by name. */
async function carried(folder: 'alerts' | 'dashboards'): Promise<[name: string, content: string][]> {
  const dir = join(chartDir, 'files', folder)
  const names = (await readdir(dir)).sort()
  return await Promise.all(
    names.map(async (name): Promise<[string, string]> => [name, await readFile(join(dir, name), 'utf8')]),
  )
}

test.skipIf(skip)('the PrometheusRule has every rule', async () => {
  const set = ['monitoring.prometheusRule.enabled=true']
  const groups = groupsOf((await rendered('PrometheusRule', { set }))[0])
  const rules = await carried('alerts')
  assert.deepEqual(namesIn(groups), namesIn(rules.flatMap(([, yaml]): Group[] => parse(yaml).groups)))
  assert.ok(namesIn(groups).length > 20)
})

test.skipIf(skip)('the rules know how many workers there should be at least', async () => {
  const minimum = async (...set: string[]): Promise<string | undefined> => {
    const [rule] = await rendered('PrometheusRule', { set: ['monitoring.prometheusRule.enabled=true', ...set] })
    const rules = groupsOf(rule).flatMap((group) => group.rules)
    return rules.find(({ record }) => record === 'spillway:workers:minimum')?.expr
  }
  assert.equal(await minimum(), 'vector(1)')
  assert.equal(await minimum('autoscaling.minReplicas=0'), 'vector(0)')
  assert.equal(await minimum('autoscaling.enabled=false', 'worker.replicas=4'), 'vector(4)')
})

test.skipIf(skip)('alerts link to their runbooks where these are read, once that is said', async () => {
  const alertsWith = async (...set: string[]) => {
    const [rule] = await rendered('PrometheusRule', { set: ['monitoring.prometheusRule.enabled=true', ...set] })
    return groupsOf(rule)
      .flatMap((group) => group.rules)
      .filter(({ alert }) => alert !== undefined)
  }
  for (const { alert = '', annotations = {} } of await alertsWith()) {
    assert.equal(annotations.runbook, `infra/grafana/ALERTS.md#${alert.toLowerCase()}`)
    assert.equal(annotations.runbook_url, undefined)
  }
  const page = 'https://code.example.test/spillway/blob/main/infra/grafana/ALERTS.md'
  const linked = await alertsWith(`monitoring.prometheusRule.runbookUrl=${page}`)
  assert.ok(linked.length > 10)
  for (const { alert = '', annotations = {} } of linked) {
    assert.equal(annotations.runbook_url, `${page}#${alert.toLowerCase()}`)
    assert.deepEqual([annotations.runbook, typeof annotations.summary], [undefined, 'string'])
  }
  await assert.rejects(alertsWith('monitoring.prometheusRule.runbookUrl=/runbooks'), /runbookUrl/)
})

test.skipIf(skip)('the ConfigMap has every dashboard', async () => {
  const [configMap] = await rendered('ConfigMap', { set: ['monitoring.dashboards.enabled=true'] })
  const dashboards = await carried('dashboards')
  assert.deepEqual(configMap?.data, Object.fromEntries(dashboards))
  assert.ok(dashboards.length > 0)
})
