// The table of metrics in README.md is what a gateway and a worker really show.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'vitest'
import { openScene } from '../../src/scene.ts'
import { readMetricsTable } from '../metrics-table.ts'

test('the table names every metric, where it is, its type, its labels and what it says', async () => {
  const scene = await openScene()
  try {
    await scene.worker()
    const gateway = await scene.gateway()
    const account = { email: 'someone@example.test', password: 'a passphrase' }
    await gateway.api.register(account)
    assert.equal((await gateway.api.login(account)).status, 200)
    const page = async (opsUrl: string) => readExposition(await (await fetch(`${opsUrl}/metrics`)).text())
    const [worker] = scene.workers
    const shown = { gateway: await page(gateway.opsUrl), worker: await page(worker?.opsUrl ?? '') }

    const names = new Set([...shown.gateway, ...shown.worker].map(({ name }) => name))
    const actual = [...names].map((name) => {
      const found = Object.entries(shown).flatMap(([from, metrics]) =>
        metrics.filter((metric) => metric.name === name).map((metric) => ({ ...metric, from })),
      )
      const [first] = found
      return {
        name,
        type: first?.type,
        from: found.length === 2 ? 'both' : first?.from,
        labels: [...new Set(found.flatMap(({ labels }) => labels))].sort(),
        means: first?.help,
      }
    })
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name)
    const told = readMetricsTable().map(({ worry: _, ...row }) => ({ ...row, labels: row.labels.sort() }))
    assert.deepEqual(told.sort(byName), actual.sort(byName))
  } finally {
    await scene.close()
  }
})

test('the table says of every metric when to worry', () => {
  for (const { name, worry } of readMetricsTable()) assert.ok(worry.length > 0, name)
})

test('the dashboard shows every metric of the table, and no other of ours', () => {
  const dashboard = new URL('../../../helm/spillway/files/dashboards/spillway.json', import.meta.url)
  const { panels }: { panels: { targets?: { expr: string }[] }[] } = JSON.parse(readFileSync(dashboard, 'utf8'))
  const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)).join('\n')
  const known = new Set(readMetricsTable().map(({ name }) => name))
  const used = new Set(
    [...queries.matchAll(/spillway_\w+/g)].map(([name]) =>
      known.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''),
    ),
  )
  assert.deepEqual([...used].sort(), [...known].sort())
})

interface ShownMetric {
  name: string
  type: string
  help: string
  /** The label names of all series, except `le`, which the format adds. */
  labels: string[]
}

/** The metrics of a page in Prometheus's text format whose names begin with `spillway_`. */
function readExposition(page: string): ShownMetric[] {
  const metrics = new Map<string, ShownMetric>()
  for (const line of page.split('\n')) {
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (spillway_\w+) (.*)$/.exec(line) ?? []
    if (keyword === 'HELP') metrics.set(name, { name, help: rest, type: '', labels: [] })
    const metric = metrics.get(name)
    if (keyword === 'TYPE' && metric !== undefined) metric.type = rest
  }
  for (const metric of metrics.values()) {
    const series = new RegExp(`^${metric.name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, 'gm')
    const labels = [...page.matchAll(series)].flatMap(([, text = '']) =>
      [...text.matchAll(/(\w+)="/g)].map(([, label = '']) => label),
    )
    metric.labels = [...new Set(labels)].filter((label) => label !== 'le')
  }
  return [...metrics.values()]
}
