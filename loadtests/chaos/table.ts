// The table at the end of a run.
import { markdownTable } from 'markdown-table'
import type { Findings } from './scenario.ts'

export interface Row {
  name: string
  findings: Findings
}

const columns: [title: string, align: 'l' | 'r', of: (row: Row) => string][] = [
  ['scenario', 'l', ({ name }) => name],
  ['requests', 'r', ({ findings }) => count(findings.requests)],
  ['succeeded', 'r', ({ findings }) => count(findings.succeeded)],
  ['ticketed', 'r', ({ findings }) => count(findings.ticketed)],
  ['refused', 'r', ({ findings }) => count(findings.refused)],
  ['failed', 'r', ({ findings }) => count(findings.failed)],
  ['worst extra delay', 'r', ({ findings }) => seconds(findings.worstExtraMs)],
  ['recovery', 'r', ({ findings }) => seconds(findings.recoveryMs)],
  ['', 'l', ({ findings }) => (findings.broken.length === 0 ? 'pass' : 'FAIL')],
]

/** A Markdown table, and under it the notes and broken promises of each scenario. */
export function table(rows: readonly Row[]): string {
  const cells = [columns.map(([title]) => title), ...rows.map((row) => columns.map(([, , of]) => of(row)))]
  return [markdownTable(cells, { align: columns.map(([, align]) => align) }), ...rows.flatMap(remarks)].join('\n')
}

function remarks({ name, findings }: Row): string[] {
  const notes = findings.notes.length === 0 ? [] : [`${name}: ${findings.notes.join('; ')}`]
  return [...notes, ...findings.broken.map((sentence) => `${name}: BROKEN: ${sentence}`)]
}

function count(value: number): string {
  return value.toLocaleString('en')
}

function seconds(ms: number | undefined): string {
  return ms === undefined ? '–' : `${(ms / 1_000).toFixed(2)} s`
}
