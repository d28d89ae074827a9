// The dashboard as Grafana imports it.
import { fileURLToPath } from 'node:url'
import { layOut } from './panel.ts'
import { rows } from './rows.ts'

export const dashboardFile = fileURLToPath(
  new URL('../../helm/spillway/files/dashboards/spillway.json', import.meta.url),
)

/** The JSON of the dashboard, made from its rows. */
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
    panels: layOut(rows),
  }
  return `${JSON.stringify(dashboard, undefined, 2)}\n`
}
