// A /metrics page, read as far as needed here (Prometheus's text format).

export interface ShownMetric {
  name: string
  type: string
  help: string
  /** Of all its series together, without those of the format itself. */
  labels: string[]
}

/** The metrics of a page whose names begin with `spillway_`. */
export function readExposition(page: string): ShownMetric[] {
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
