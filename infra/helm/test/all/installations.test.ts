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
  groups: { rules: { alert?: string; record?: string; expr: string; labels: Record<string, string> }[] }[]
}

/** Beside one called spillway in the same namespace. */
async function rulesOfWest(): Promise<Spec> {
  const set = ['monitoring.prometheusRule.enabled=true']
  return specOf((await rendered('PrometheusRule', { release: 'west', namespace: 'blue', set }))[0])
}

test.skipIf(skip)('every selector names the installation, and so do the labels of every rule', async () => {
  const pods = '{namespace="blue",service=~"west-spillway-(gateway|worker)-ops"'
  const scopes = { 'spillway:': '{namespace="blue",release="west"', kube_: '{namespace="blue"' }
  const selectors: string[] = []
  for (const { alert, record, expr, labels } of (await rulesOfWest()).groups.flatMap(({ rules }) => rules)) {
    assert.deepEqual([labels.namespace, labels.release], ['blue', 'west'], alert ?? record)
    assert.doesNotMatch(expr, /keda-hpa-(?!west-spillway-worker)/)
    for (const { 0: name, index } of expr.matchAll(/\b(?:spillway_|nodejs_|kube_|spillway:)[\w:]+/g)) {
      const scope = Object.entries(scopes).find(([start]) => name.startsWith(start))?.[1] ?? pods
      assert.ok(expr.startsWith(scope, index + name.length), `${alert ?? record} asks for any ${name}`)
      selectors.push(name)
    }
  }
  assert.ok(selectors.length > 20)
})

test.skipIf(skip || skipWithoutPromtool)('promtool takes the rules of the chart', async (t) => {
  const dir = await scratchDir(t)
  // JSON is YAML.
  await writeFile(join(dir, 'west.yaml'), JSON.stringify(await rulesOfWest()))
  await promtool(dir, ['check', 'rules', 'west.yaml'])
})
