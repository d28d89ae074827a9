// The last findings of each scenario. The last two columns of the page of promises are made of
// them. A record names its commit, and goes when its scenario or the stage changes.
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { UserError } from '@spillway/infra/processes/command-line'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { markdownTable } from 'markdown-table'
import type { Findings } from './findings.ts'
import { scenariosOfFiles } from './scenarios.ts'

/** What is kept of a scenario's findings. */
export interface Measured {
  commit: string
  requests: number
  failed: number
  worstExtraMs?: number | undefined
  recoveryMs?: number | undefined
  notes: readonly string[]
  broken: readonly string[]
}

type MeasuredScenarios = Readonly<Record<string, Measured>>

export const pageFile = new URL('README.md', import.meta.url)
const recordFile = new URL('measured.json', import.meta.url)

export async function readRecord(): Promise<MeasuredScenarios> {
  return JSON.parse(await readFile(recordFile, 'utf8'))
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: repositoryDir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
}

/** What a scenario's findings depend on beside the product. */
function filesOf(name: string): string[] {
  const [file = name] = Object.entries(scenariosOfFiles).find(([, all]) => all.some((one) => one.name === name)) ?? []
  return [`scenarios/${file}.ts`, 'findings.ts', 'scenario.ts', 'stage'].map((path) => `loadtests/chaos/${path}`)
}

/** The rows whose commit is not here, or whose scenario or stage changed since. */
export function outdated(record: MeasuredScenarios): string[] {
  const isOutdated = ([name, { commit }]: [string, Measured]) => {
    try {
      return git('diff', '--name-only', commit, 'HEAD', '--', ...filesOf(name)) !== ''
    } catch {
      return true
    }
  }
  return Object.entries(record)
    .filter(isOutdated)
    .map(([name]) => name)
}

/** @throws {@link UserError} where the checkout differs from its commit */
export function commitToRecord(): string {
  if (git('status', '--porcelain', '--untracked-files=no') === '') return git('rev-parse', '--short=8', 'HEAD')
  throw new UserError('--record is of a commit: commit what differs first.')
}

/** Replaces the findings of these scenarios, drops outdated ones, and updates the page. */
export async function keepFindings(rows: readonly Row[], commit: string): Promise<void> {
  const measured = rows.map(({ name, findings }): [string, Measured] => {
    const { requests, failed, worstExtraMs, recoveryMs, notes, broken } = findings
    return [name, { commit, requests, failed, worstExtraMs, recoveryMs, notes, broken }]
  })
  const all = { ...(await readRecord()), ...Object.fromEntries(measured) }
  const gone = outdated(all)
  const kept = Object.entries(all).filter(([name]) => !gone.includes(name))
  const sorted = Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)))
  await writeFile(recordFile, `${JSON.stringify(sorted, null, 2)}\n`)
  await writeFile(pageFile, withFigures(await readFile(pageFile, 'utf8'), sorted))
}

/** A row of the page up to the figures: promise, condition, scenario or beginning of several. */
const ROW = /^(\|[^|]*\|[^|]*\| `([a-z-]+)(…?)` \|).*$/gm

/** The page with the last two columns of its table as recorded. */
export function withFigures(page: string, record: MeasuredScenarios): string {
  return page.replaceAll(ROW, (_, start: string, name: string, several: string) => {
    const found = Object.entries(record).filter(([scenario]) => isOfRow(scenario, name, several))
    if (found.length === 0) return `${start} not measured since it changed | |`
    const commits = new Set(found.map(([, { commit }]) => `\`${commit}\``))
    return `${start} ${figures(found.map(([, measured]) => measured))} | ${[...commits].join(', ')} |`
  })
}

/** The worst of several scenarios; the notes of a single one. */
function figures(measured: readonly Measured[]): string {
  const sum = (of: (one: Measured) => number) => measured.reduce((total, one) => total + of(one), 0)
  const worst = (what: string, of: (one: Measured) => number | undefined) => {
    const ms = measured.map(of).filter((value) => value !== undefined)
    return ms.length === 0 ? [] : [`${what} ${(Math.max(...ms) / 1_000).toFixed(2)} s`]
  }
  const broken = measured.flatMap((one) => one.broken)
  return [
    `${sum(({ failed }) => failed)} of ${sum(({ requests }) => requests).toLocaleString('en')} requests failed`,
    ...worst('worst extra delay', ({ worstExtraMs }) => worstExtraMs),
    ...worst('recovery', ({ recoveryMs }) => recoveryMs),
    ...(measured.length === 1 ? measured.flatMap(({ notes }) => notes) : [`${measured.length} scenarios`]),
    ...broken.map((sentence) => `**not kept**: ${sentence}`),
  ]
    .join('; ')
    .replaceAll('|', '/')
    .replaceAll(/\s*\n\s*/g, ' ')
}

/** Those of these scenarios that each row of the page stands for. */
export function scenariosOfRows(page: string, scenarios: readonly string[]): string[][] {
  return Array.from(page.matchAll(ROW), ([, , name = '', several = '']) =>
    scenarios.filter((scenario) => isOfRow(scenario, name, several)),
  )
}

function isOfRow(scenario: string, name: string, several: string): boolean {
  return several === '' ? scenario === name : scenario.startsWith(name)
}

/** The table at the end of a run. */
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
