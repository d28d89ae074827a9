// The table a run ends with.
import type { Findings } from './findings.ts'

export interface Row {
  name: string
  findings: Findings
}

const columns: { title: string; of: (row: Row) => string; left?: boolean }[] = [
  { title: 'scenario', of: ({ name }) => name, left: true },
  { title: 'requests', of: ({ findings }) => count(findings.requests) },
  { title: 'succeeded', of: ({ findings }) => count(findings.succeeded) },
  { title: 'ticketed', of: ({ findings }) => count(findings.ticketed) },
  { title: 'refused', of: ({ findings }) => count(findings.refused) },
  { title: 'failed', of: ({ findings }) => count(findings.failed) },
  { title: 'worst extra delay', of: ({ findings }) => seconds(findings.worstExtraMs) },
  { title: 'recovery', of: ({ findings }) => seconds(findings.recoveryMs) },
  { title: '', of: ({ findings }) => (findings.broken.length === 0 ? 'pass' : 'FAIL'), left: true },
]

/** A Markdown table, and under it what each scenario has to add. */
export function table(rows: readonly Row[]): string {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ of }) => of(row)))]
  const widths = columns.map((_, column) => Math.max(3, ...cells.map((line) => line[column]?.length ?? 0)))
  const draw = (line: string[]): string =>
    `| ${line.map((cell, column) => pad(cell, widths[column] ?? 0, columns[column]?.left)).join(' | ')} |`
  const rule = widths.map((width, column) => (columns[column]?.left ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  const [head = [], ...body] = cells
  return [draw(head), draw(rule), ...body.map(draw), ...rows.flatMap(remarks)].join('\n')
}

function remarks({ name, findings }: Row): string[] {
  const notes = findings.notes.length === 0 ? [] : [`${name}: ${findings.notes.join('; ')}`]
  return [...notes, ...findings.broken.map((sentence) => `${name}: BROKEN: ${sentence}`)]
}

function pad(text: string, width: number, left = false): string {
  return left ? text.padEnd(width) : text.padStart(width)
}

function count(value: number): string {
  return value.toLocaleString('en')
}

function seconds(ms: number | undefined): string {
  return ms === undefined ? '–' : `${(ms / 1_000).toFixed(2)} s`
}
