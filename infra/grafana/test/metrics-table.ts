// The table of metrics in README.md, as data: a test compares it with what gateways and workers
// really show.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface MetricRow {
  name: string
  type: string
  /** Whose /metrics has it: gateway, worker, or both. */
  from: string
  labels: string[]
  means: string
  worry: string
}

/** Its header is `Metric | Type | From | Labels | What it says | When to worry`. */
export function readMetricsTable(): MetricRow[] {
  const page = readFileSync(fileURLToPath(new URL('../README.md', import.meta.url)), 'utf8')
  return page
    .split('\n')
    .filter((line) => line.startsWith('| `spillway_'))
    .map((line) => {
      const [name = '', type = '', from = '', labels = '', means = '', worry = ''] = line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim())
      return { name: name.replaceAll('`', ''), type, from, labels: labels.match(/\w+/g) ?? [], means, worry }
    })
}
