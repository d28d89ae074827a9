// The dashboard as Grafana imports it, made from the rows of dashboard.yaml.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

/** Values from which a panel turns orange and red. */
interface Limits {
  warn: number
  bad: number
}

/** A panel of dashboard.yaml, whose head explains the fields. */
interface Panel {
  title: string
  description: string
  type?: 'timeseries' | 'stat' | 'table'
  unit?: string
  width?: number
  stacked?: boolean
  thresholds?: Limits
  floor?: Limits
  queries: { expr: string; legend: string }[]
}

export interface Row {
  title: string
  panels: Panel[]
}

export const rows: Row[] = parse(readFileSync(new URL('../dashboard.yaml', import.meta.url), 'utf8'))

export const dashboardFile = fileURLToPath(
  new URL('../../helm/spillway/files/dashboards/spillway.json', import.meta.url),
)

const PANEL_HEIGHT = 8
const COLUMNS = 24
const datasource = { type: 'prometheus', uid: '$datasource' }

const optionsOf = {
  stat: { colorMode: 'value', graphMode: 'none', reduceOptions: { calcs: ['lastNotNull'] } },
  table: { showHeader: true },
  timeseries: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
}

/** The JSON of the dashboard. */
export function dashboardJson(): string {
  const dashboard = {
    uid: 'spillway',
    title: 'Spillway',
    description: 'Logins through the queue, by the questions an operator asks.',
    tags: ['spillway'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    timezone: 'browser',
    templating: {
      list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {} }],
    },
    annotations: { list: [] },
    panels: layOut(),
  }
  return `${JSON.stringify(dashboard, undefined, 2)}\n`
}

/** Lays rows out from top to bottom, their panels from left to right. */
export function layOut(): object[] {
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

function panelJson({ title, description, type = 'timeseries', unit = 'short', ...panel }: Panel): object {
  const { stacked = false, thresholds, floor, queries } = panel
  const steps = thresholds
    ? coloured('green', ['orange', thresholds.warn], ['red', thresholds.bad])
    : floor && coloured('red', ['orange', floor.bad], ['green', floor.warn])
  const isOverTime = type === 'timeseries'
  return {
    type,
    title,
    description,
    datasource,
    targets: queries.map(({ expr, legend }, index) => ({
      refId: 'ABCDEFGH'[index],
      datasource,
      expr,
      legendFormat: legend,
      ...(isOverTime ? {} : { instant: true, format: type === 'table' ? 'table' : 'time_series' }),
    })),
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        ...(steps && { thresholds: { mode: 'absolute', steps } }),
        custom: !isOverTime
          ? {}
          : {
              lineWidth: 2,
              fillOpacity: stacked ? 30 : 8,
              showPoints: 'never',
              stacking: { mode: stacked ? 'normal' : 'none' },
              thresholdsStyle: { mode: steps ? 'line' : 'off' },
            },
      },
      overrides: [],
    },
    options: optionsOf[type],
  }
}

/** Colours by value: the first below all limits, each other from its limit on. */
function coloured(lowest: string, ...others: [color: string, value: number][]): object[] {
  return [{ color: lowest, value: null }, ...others.map(([color, value]) => ({ color, value }))]
}
