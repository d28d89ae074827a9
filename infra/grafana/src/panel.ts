// Rows and panels as Grafana's JSON has them, from as little as tells one apart from another.

export type Unit = 'short' | 'reqps' | 's' | 'percentunit' | 'bytes' | 'none'

export interface Query {
  /** PromQL; `$__rate_interval` and `$__range` are Grafana's. */
  expr: string
  /** The name of each series, with `{{label}}` in it. */
  legend: string
}

export interface Panel {
  title: string
  /** What it tells and when to worry; Grafana shows it behind the title. */
  description: string
  /** [timeseries] */
  type?: 'timeseries' | 'stat' | 'table'
  /** [short] */
  unit?: Unit
  /** Columns of the 24 that a row has. [8] */
  width?: number
  stacked?: boolean
  /** Values from which it turns orange and red. */
  thresholds?: { warn: number; bad: number }
  /** The same where low values are bad. */
  floor?: { warn: number; bad: number }
  queries: Query[]
}

export interface Row {
  /** A question. */
  title: string
  panels: Panel[]
}

const PANEL_HEIGHT = 8
const COLUMNS = 24
const DATASOURCE = { type: 'prometheus', uid: '$datasource' }

/** Lays rows out from top to bottom, their panels from left to right. */
export function layOut(rows: Row[]): object[] {
  const placed: object[] = []
  let y = 0
  for (const { title, panels } of rows) {
    placed.push({ id: placed.length + 1, type: 'row', title, collapsed: false, gridPos: { x: 0, y, w: COLUMNS, h: 1 } })
    y += 1
    let x = 0
    for (const panel of panels) {
      const w = panel.width ?? 8
      if (x + w > COLUMNS) {
        x = 0
        y += PANEL_HEIGHT
      }
      placed.push({ id: placed.length + 1, gridPos: { x, y, w, h: PANEL_HEIGHT }, ...panelJson(panel) })
      x += w
    }
    y += PANEL_HEIGHT
  }
  return placed
}

function panelJson({
  title,
  description,
  type = 'timeseries',
  unit = 'short',
  stacked = false,
  ...panel
}: Panel): object {
  const { thresholds, floor, queries } = panel
  return {
    type,
    title,
    description,
    datasource: DATASOURCE,
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
      ...(type === 'timeseries' ? {} : { instant: true, format: type === 'table' ? 'table' : 'time_series' }),
    })),
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        ...(thresholds || floor ? { thresholds: { mode: 'absolute', steps: steps(thresholds, floor) } } : {}),
        custom: {
          ...(type === 'timeseries'
            ? {
                lineWidth: 2,
                fillOpacity: stacked ? 30 : 8,
                showPoints: 'never',
                stacking: { mode: stacked ? 'normal' : 'none' },
                thresholdsStyle: { mode: thresholds || floor ? 'line' : 'off' },
              }
            : {}),
        },
      },
      overrides: [],
    },
    options: optionsOf(type),
  }
}

function optionsOf(type: Panel['type']): object {
  if (type === 'stat') return { colorMode: 'value', graphMode: 'none', reduceOptions: { calcs: ['lastNotNull'] } }
  if (type === 'table') return { showHeader: true }
  return { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } }
}

function steps(thresholds: Panel['thresholds'], floor: Panel['floor']): object[] {
  if (thresholds) {
    const { warn, bad } = thresholds
    return [
      { color: 'green', value: null },
      { color: 'orange', value: warn },
      { color: 'red', value: bad },
    ]
  }
  return [
    { color: 'red', value: null },
    { color: 'orange', value: floor?.bad },
    { color: 'green', value: floor?.warn },
  ]
}
